"""What each option of a case takes, and what a wrong one is answered with, before the case is executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracing.errors import Problem
from tracing.program.case import load_case, missing_packages, require_case
from tracing.program.case_options import CaseOption, options_of, options_text, written_options

TEXT = """
import typing
from typing import Literal
import no_such_package.part, neighbour
from tracing import Workload
{future}

def build(device, kind: Literal["plain", "fused"] = "plain", level: typing.Literal[1, 2] = 1, size: int = 4,
          rate: float = 0.5, name: str = "x", on: bool = False):
    raise RuntimeError("executed")
"""
OPTIONS = {
    "kind": CaseOption("plain", ("plain", "fused")), "level": CaseOption(1, (1, 2)), "size": CaseOption(4),
    "rate": CaseOption(0.5), "name": CaseOption("x"), "on": CaseOption(False),
}  # fmt: skip


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "chosen.py"
    path.write_text(TEXT.format(future=""))
    path.with_name("neighbour.py").touch()
    return path


def test_the_options_are_read_from_the_file_without_executing_it(case: Path) -> None:
    assert written_options(case) == OPTIONS
    assert options_text(OPTIONS) == (
        "kind=plain (or fused), level=1 (or 2), size=4, rate=0.5, name=x, on=False"
    )
    assert missing_packages(case) == ["no_such_package"]


@pytest.mark.parametrize("future", ["", "from __future__ import annotations"])
def test_the_options_of_an_imported_build_are_the_same(future: str) -> None:
    scope: dict[str, object] = {}
    text = f"{future}\n" + TEXT.format(future="").replace("import no_such_package.part, neighbour", "")
    exec(text, scope)

    assert options_of(scope["build"]) == OPTIONS  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "problem", "remedy"),
    [
        ("kind=plian", "the option kind cannot be plian", "nearest: plain; it is one of plain, fused"),
        ("level=3", "the option level cannot be 3", "it is one of 1, 2"),
        ("size=4.5", "the option size cannot be 4.5", "give a whole number, as 4"),
        ("rate=high", "the option rate cannot be high", "give a number, as 0.5"),
        ("on=maybe", "the option on cannot be maybe", "give true or false"),
        ("siez=4", "has no option siez", "nearest: size; its options, with their defaults: kind=plain"),
    ],
)
def test_a_wrong_option_is_answered_with_what_is_needed(
    option: str, problem: str, remedy: str, case: Path
) -> None:
    with pytest.raises(Problem) as raised:
        require_case(f"{case}:{option}")

    assert problem in raised.value.problem
    assert raised.value.remedy.startswith(remedy)


def test_chosen_options_reach_build_as_their_types() -> None:
    case = load_case("flex_attention:mask=window,tokens=16,backward=no")

    assert case.build.keywords == {"mask": "window", "tokens": 16, "backward": False}  # type: ignore[attr-defined]
