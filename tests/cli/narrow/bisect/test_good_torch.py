"""`tracing bisect CASE --good-torch`: environments, and the exit status."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import tracing

from tracing.analyze.graphs.compiler_divergence import ComparedStage, CompilerDivergence, TwoCompilers
from tracing.cli.narrow.bisect.good_torch import exit_status, python_of
from tracing.errors import Problem
from tracing.model import Outcome

RIGHT, WRONG = Outcome("passed", ""), Outcome("differs", "")
DIVERGENCE = ComparedStage("graph", 1, CompilerDivergence("graph", "graph", "Dynamo", ("a", "b")))


def an_environment(folder: Path, torch: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").touch()
    (folder / f"lib/python3.11/site-packages/torch-{torch}.dist-info").mkdir(parents=True)
    return folder / "bin/python"


def test_an_environment_is_known_by_its_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    an_environment(tmp_path / ".venv-old", "2.1.0")
    python = an_environment(tmp_path / ".venv-new", "2.1.7+cpu")

    assert python_of("2.1.7") == python
    assert python_of(str(tmp_path / ".venv-new")) == python


def test_a_torch_that_no_environment_has_names_the_command_that_makes_one() -> None:
    with pytest.raises(Problem) as raised:
        python_of("1.2.3")

    assert "make venv VENV=.venv-torch1.2.3 TORCH=1.2.3" in raised.value.remedy


@pytest.mark.parametrize(
    ("outcomes", "compared", "status"),
    [
        ((RIGHT, RIGHT), [DIVERGENCE], 0),
        ((WRONG, RIGHT), [DIVERGENCE], 1),
        ((WRONG, RIGHT), [], 2),
        ((WRONG, WRONG), [DIVERGENCE], 2),
        ((None, RIGHT), [DIVERGENCE], 1),
    ],
)
def test_a_stage_is_named_only_if_the_good_torch_is_right(
    outcomes: tuple[Outcome | None, Outcome | None], compared: list[ComparedStage], status: int
) -> None:
    assert exit_status(TwoCompilers(outcomes, compared)) == status


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    done = tracing("bisect", "silu", "--good-torch", "1.2.3", runs=tmp_path)

    assert (done.returncode, "no environment here has torch 1.2.3" in done.stderr) == (2, True)
