"""A case is a file with build(device) -> Workload; any other file is refused with one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracing.errors import Problem
from tracing.program.case import build, find_case, known_cases, load_case


def write(folder: Path, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path)


def test_a_case_is_found_by_name() -> None:
    case = load_case("silu")

    assert case.name == "silu"
    assert "fused pointwise kernel" in case.description


def test_a_case_is_found_by_path(tmp_path: Path) -> None:
    path = write(
        tmp_path, "def build(device):\n    from tracing import Workload\n    return Workload(len, ([],))\n"
    )

    assert build(load_case(path), "cpu").fn is len


@pytest.mark.parametrize(("name", "near"), [("sliu", "silu"), ("zzzz", "silu")])
def test_an_unknown_case_is_refused_with_similar_ones_or_all(name: str, near: str) -> None:
    with pytest.raises(Problem) as problem:
        find_case(name)

    assert near in problem.value.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", r"has no build\(device\)"),
        ("1 / 0", r"cannot be imported: ZeroDivisionError: division by zero \(mine\.py:1\)"),
        ("def build(:", "cannot be imported: SyntaxError"),
    ],
)
def test_a_file_that_is_no_case_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        load_case(write(tmp_path, text))


def test_a_build_that_returns_no_workload_is_refused(tmp_path: Path) -> None:
    case = load_case(write(tmp_path, "def build(device):\n    return 3\n"))

    with pytest.raises(Problem, match="returned int, not a Workload"):
        build(case, "cpu")


def test_every_case_of_the_repository_has_a_description() -> None:
    assert all(load_case(name).description for name in known_cases())
