"""Results, starts and outcomes of two runs, compared by value."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import DATA
from handmade.runs import saved
from recorded.runs import recorded

from tracing import store
from tracing.analyze.runs.errors import alike
from tracing.analyze.runs.results import (
    differing_outcomes,
    differing_results,
    differing_start,
    failed_alike,
    results,
    uncomparable_results,
)
from tracing.model import Outcome

ANSWERS = DATA / "answers.py"


@pytest.fixture(scope="module")
def a(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    return recorded(ANSWERS, tmp_path_factory.mktemp("runs"))


def test_equal_runs_have_no_difference_and_name_what_cannot_be_compared(a: store.Run, tmp_path: Path) -> None:
    b = recorded(ANSWERS, tmp_path)

    assert (differing_start(a, b), differing_results(a, b), differing_outcomes(a, b)) == ((), (), ())
    assert uncomparable_results(a, b) == ("output['lock'] (lock): it has no fields that Python shows",)


@pytest.mark.parametrize(
    ("planted", "name", "values"),
    [
        ("dtype", "output['tensor']", "float32[4] … | int32[4] …"),
        ("shape", "output['shape']", "float32[4] … | float32[2, 2] …"),
        ("stride", "output['stride']", "…, stride [2, 1] | …, stride [1, 3]"),
        ("empty", "output['empty']", "float32[0, 4] … | float32[4, 0] …"),
        ("none", "output['none']", "None | float32[4] …"),
        ("length", "output['tuple']", "tuple of 1 | tuple of 2, with [1]"),
        ("list", "output['kind']", "tuple of 1 | list of 1"),
        ("zero", "output['number']", "0.0 | -0.0"),
        ("type", "output['flag']", "bool True | int 1"),
        ("text", "output['text']", "'a' | 'b'"),
        ("key", "output", "dict of 13, with ['key'] | dict of 13, with ['other']"),
        ("lr", "hidden.optimizer.param_groups[0]['lr']", "0.5 | 0.25"),
        ("buffer", "buffer hidden.model.seen", "float32[1] … | float32[1] …"),
        ("closure", "state hidden.cache[0]", "float32[4] … | float32[4] …"),
        ("input", "input 0 afterwards", "float32[4] … | float32[4] …"),
    ],
)
def test_a_planted_difference_is_named(
    a: store.Run, tmp_path: Path, planted: str, name: str, values: str
) -> None:
    differing = differing_results(a, recorded(f"{ANSWERS}:b={planted}", tmp_path))

    assert differing[0].name == name
    assert {one.name.partition(name)[0] for one in differing} == {""} or planted == "key"
    for side, expected in zip((differing[0].a, differing[0].b), values.split(" | "), strict=True):
        assert all(part in side for part in expected.split("…"))


def test_the_start_of_a_case_is_distinguished_from_its_results(a: store.Run, tmp_path: Path) -> None:
    b = recorded(f"{ANSWERS}:b=start", tmp_path)

    assert [one.name for one in differing_start(a, b)] == ["input 0"]
    assert "parameter hidden.model.weight" in [one.name for one in differing_results(a, b)]


def test_an_argument_that_the_case_did_not_change_is_no_result(tmp_path: Path) -> None:
    run = recorded("silu", tmp_path)

    assert list(results(run)) == [(0, "output")]


def test_a_run_that_failed_and_one_that_did_not_differ_in_their_outcome(a: store.Run, tmp_path: Path) -> None:
    (outcome,) = differing_outcomes(a, recorded(f"{ANSWERS}:b=raise", tmp_path))

    assert (outcome.name, outcome.a) == ("outcome", "passed")
    assert outcome.b.startswith("failed: ValueError: no result in <object object at 0x")


def test_runs_that_fail_alike_do_not_differ_and_are_reported_as_failed(tmp_path: Path) -> None:
    a, b = (recorded(f"{ANSWERS}:b=raise", tmp_path / name) for name in "ab")

    assert differing_outcomes(a, b) == ()
    assert failed_alike(a, b)[0].startswith("the case failed alike in both runs: ValueError: no result in")


def failed(detail: str, message: str = "") -> Outcome:
    return Outcome("failed", detail, message=message or detail)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("E: at 0x7f00 (case.py:3)", "E: at 0x7fff (case.py:3)", True),
        ("E: in /tmp/tracing-ab/x.py", "E: in /tmp/tracing-cd/y/x.py", True),
        ("E: pid 12 died", "E: pid 345 died", True),
        ("E: 1.50 GiB is free", "E: 20.00 GiB is free", True),
        ("E: x (case.py:3)", "E: x (case.py:4)", False),
        ("E: x", "F: x", False),
        ("E: size 3", "E: size 4", False),
    ],
)
def test_errors_are_alike_without_addresses_processes_and_temporary_paths(a: str, b: str, same: bool) -> None:
    assert alike(failed(a), failed(b)) == same


def test_errors_whose_first_lines_are_equal_differ_in_a_later_one() -> None:
    assert not alike(failed("E: at 3:4:", "at 3:4:\n x + 1"), failed("E: at 3:4:", "at 3:4:\n x + 2"))


@pytest.mark.parametrize(
    ("a", "b", "texts"),
    [
        ("exit status 0; 1 launch", "exit status 3; 1 launch", ("exit status 0", "exit status 3")),
        ("exit status 0; 1 launch", "os._exit(1); 1 launch", ("exit status 0", "exit status 1")),
        ("exit status 0; 1 launch", "os._exit(0); 1 launch", None),
        ("exit status 3; 1 launch", "exit status 3; 2 launches", None),
    ],
)
def test_programs_that_end_with_another_exit_status_differ(
    a: str, b: str, texts: tuple[str, str] | None, tmp_path: Path
) -> None:
    runs = [saved(tmp_path / name, [], [Outcome("ended", one)]) for name, one in (("a", a), ("b", b))]

    differing = differing_outcomes(*runs)

    assert [(one.name, one.a, one.b) for one in differing] == ([("outcome", *texts)] if texts else [])
