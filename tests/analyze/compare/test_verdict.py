"""The verdict on two runs: their start, launches, results and endings, and the exit status."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from handmade.records import META, arg, launch
from handmade.runs import Operators, digits, saved

from tracing.analyze.compare.cause_kinds import Host, OperatorCause, Uninitialised, UnknownCause
from tracing.analyze.compare.divergence_kinds import Divergence, InputDiffers, OutputDiffers, kind_of
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.model import (
    Digest,
    KernelLaunch,
    Outcome,
    PlainValue,
    Record,
    Result,
    Selection,
    Start,
    Storage,
    TensorValue,
    Uncomparable,
)
from tracing.store import Run

X, ADDRESS = 7, 4096
STORAGE = Storage(X, ADDRESS, 16)


def made(value: str = "y", result: str = "z") -> list[KernelLaunch]:
    """A writer of X, and a reader that reads `value` from X."""
    into = arg("out_ptr", "out", "old", result, storage=99)
    return [
        launch(0, arg("out_ptr", "out", "old", "y", storage=X), name="writer"),
        launch(1, arg("in_ptr", "in", value, storage=X), into, name="reader"),
    ]


def plain(text: str) -> PlainValue:
    return PlainValue("int", text)


def tensor(word: str, address: int = 0) -> TensorValue:
    return TensorValue(META, Digest(digits(word)), address)


Runs = Callable[..., tuple[ComparisonVerdict, list[Divergence]]]


@pytest.fixture
def compared(tmp_path: Path) -> Runs:
    """The verdict on two runs of two launches each, with the given records added."""

    def compare(
        a: Iterable[Record] = (), b: Iterable[Record] = (), *, launches: tuple[object, object] | None = None
    ) -> tuple[ComparisonVerdict, list[Divergence]]:
        one, other = launches or (made(), made())
        verdict = ComparisonVerdict.of(_run(tmp_path / "a", one, a), _run(tmp_path / "b", other, b), 64)
        return verdict, list(verdict)

    return compare


def _run(folder: Path, launches: object, records: Iterable[Record]) -> Run:
    added = list(records)
    ended = not any(isinstance(one, Outcome) for one in added)
    return saved(folder, launches, added, ended=ended)  # type: ignore[arg-type]


# ---- exit status


def test_equal_runs_have_status_0(compared: Runs) -> None:
    results = [Result("output", tensor("y")), Result("output[0]", plain("1"))]

    verdict, divergences = compared(results, results)

    assert (divergences, verdict.status, verdict.equal_results) == ([], 0, 2)


def test_a_launch_that_differs_has_status_1(compared: Runs) -> None:
    verdict, divergences = compared(launches=(made("y"), made("poked")))

    assert ([kind_of(one) for one in divergences], verdict.status, verdict.found) == (["input"], 1, 1)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Result("output", plain("1")), Result("output", plain("2"))),
        (Result("output", plain("1")), Result("output", PlainValue("float", "1.0"))),
        (Start("seed", plain("1")), Start("seed", plain("2"))),
    ],
    ids=["result", "type", "start"],
)
def test_equal_launches_with_another_result_or_start_have_status_1(
    a: Record, b: Record, compared: Runs
) -> None:
    verdict, divergences = compared([a], [b])

    assert (divergences, verdict.status) == ([], 1)


def failed(detail: str) -> Outcome:
    return Outcome("failed", detail, message=detail)


def test_a_run_that_failed_differs_from_one_that_passed(compared: Runs) -> None:
    verdict, _ = compared(b=[failed("ValueError: no (case.py:3)")])

    assert verdict.status == 1
    assert [(one.name, one.a, one.b) for one in verdict.outcomes] == [
        ("outcome", "passed", "failed: ValueError: no (case.py:3)")
    ]


def test_runs_that_failed_with_other_errors_differ(compared: Runs) -> None:
    verdict, _ = compared([failed("ValueError: no")], [failed("KeyError: no")])

    assert (verdict.status, len(verdict.outcomes)) == (1, 1)


def test_runs_that_failed_alike_are_compared_in_part(compared: Runs) -> None:
    verdict, divergences = compared([failed("ValueError: at 0x1")], [failed("ValueError: at 0x2")])

    assert (divergences, verdict.outcomes, verdict.status) == ([], (), 2)
    assert "the case failed alike in both runs" in verdict.comparison.notes.notes[0]


def test_a_run_that_was_interrupted_is_compared_in_part(compared: Runs) -> None:
    verdict, divergences = compared(b=[Outcome("interrupted", "")])

    assert (divergences, verdict.outcomes, verdict.status) == ([], (), 2)


def test_records_that_cannot_be_compared_are_named_and_leave_the_verdict_undecided(compared: Runs) -> None:
    lock = [Result("output", Uncomparable("lock", "it has no fields that Python shows"))]

    verdict, _ = compared(lock, lock)

    assert verdict.status == 2
    assert verdict.comparison.notes.notes == ["output (lock): it has no fields that Python shows"]


# ---- launches that one run was not asked to record


@pytest.mark.parametrize(
    ("selections", "status", "told"),
    [
        ((Selection(launches=(1, 2)),) * 2, 0, "both runs were recorded with --launches 1:2"),
        ((Selection(), Selection(launches=(1, 2))), 2, "b was recorded with --launches 1:2"),
        ((Selection(kernels=("read*",)), Selection()), 2, "a was recorded with --kernel 'read*'"),
    ],
)
def test_only_launches_that_both_runs_cover_are_compared_and_the_rest_is_reported(
    selections: tuple[Selection, Selection], status: int, told: str, tmp_path: Path
) -> None:
    runs = []
    for name, selection in zip("ab", selections, strict=True):
        covered = [one for one in made() if selection.wants(one.index, one.kernel_name, "forward")]
        runs.append(saved(tmp_path / name, covered, selection=selection))

    verdict = ComparisonVerdict.of(runs[0], runs[1], 64)

    assert (list(verdict), verdict.comparison.notes.pairs, verdict.status) == ([], 1, status)
    assert told in verdict.comparison.notes.selected


def test_a_possible_write_by_an_unrecorded_launch_accuses_nothing(tmp_path: Path) -> None:
    only = Selection(launches=(1, 2))
    a, b = (saved(tmp_path / value, made(value)[1:], selection=only) for value in "yz")

    (divergence,) = ComparisonVerdict.of(a, b, 64)

    assert isinstance(divergence, InputDiffers)
    assert divergence.cause == UnknownCause("only some launches were recorded")


# ---- the start


def test_launches_that_read_different_inputs_of_the_case_are_consequences(compared: Runs) -> None:
    sides = [made(value, value)[1:] for value in ("y", "z")]

    verdict, divergences = compared(
        [Start("input 0", tensor("y"))], [Start("input 0", tensor("z"))], launches=tuple(sides)
    )

    assert [one.title for one in verdict.start] == ["input 0"]
    assert (divergences, verdict.comparison.notes.consequences, verdict.status) == ([], 1, 1)


def test_a_kernel_that_differs_in_addition_to_the_start_is_accused_too(compared: Runs) -> None:
    racing = [[launch(0, arg("out_ptr", "out", "old", value), name="racing")] for value in ("y", "z")]

    _, divergences = compared(
        [Start("input 0", tensor("y"))], [Start("input 0", tensor("z"))], launches=tuple(racing)
    )

    assert [kind_of(one) for one in divergences] == ["output"]


# ---- results that differ although no launch does


def test_a_result_that_the_host_changed_afterwards_is_explained(compared: Runs) -> None:
    verdict, divergences = compared(*([STORAGE, Result("output", tensor(word, ADDRESS))] for word in "yz"))

    assert (divergences, verdict.status) == ([], 1)
    assert verdict.why is not None and isinstance(verdict.why.cause, Host)
    assert (verdict.why.result.name, verdict.why.cause.runs) == ("output", "b")


def test_the_best_explained_of_several_results_is_reported(compared: Runs) -> None:
    added = Operators().call(2, "aten::add_", [X], [X]).records
    a, b = (
        [STORAGE, Result("output[0]", plain(word)), Result("output[1]", tensor(word, ADDRESS))]
        for word in "yz"
    )

    verdict, _ = compared(a, [*added, *b])

    assert verdict.why is not None
    assert (verdict.why.result.name, verdict.why.cause) == (
        "output[1]",
        OperatorCause(("", "aten::add_"), ("", ""), "b", proven=True),
    )


def test_a_result_without_a_known_cause_is_still_named(compared: Runs) -> None:
    verdict, _ = compared([Result("output", plain("1"))], [Result("output", plain("2"))])

    assert verdict.why is not None
    assert (verdict.why.result.name, verdict.why.cause) == ("output", None)


def test_results_are_consequences_of_a_launch_that_differs(compared: Runs) -> None:
    a, b = ([Result("output", tensor(word))] for word in "yz")

    verdict, divergences = compared(a, b, launches=(made("y"), made("poked")))

    assert (len(divergences), verdict.why, len(verdict.results)) == (1, None, 1)


# ---- doubts


def unwritten(rest: str) -> list[KernelLaunch]:
    """A launch whose result holds `rest` in bytes that the launch may not have written."""
    return [launch(0, arg("out_ptr", "out", rest, "x" + rest, storage=X), name="partial")]


def test_unwritten_memory_is_no_difference_while_the_results_are_equal(compared: Runs) -> None:
    results = [Result("output", tensor("y"))]

    verdict, divergences = compared(results, results, launches=(unwritten("a"), unwritten("b")))

    assert (divergences, verdict.status, verdict.comparison.notes.unwritten) == ([], 0, 1)


def test_unwritten_memory_is_the_suspect_where_a_result_differs(compared: Runs) -> None:
    a, b = ([Result("output", plain(word))] for word in "12")

    verdict, (divergence,) = compared(a, b, launches=(unwritten("a"), unwritten("b")))

    assert isinstance(divergence, OutputDiffers)
    assert (divergence.doubt, verdict.status) == ("unwritten", 1)


def test_the_reader_of_unwritten_memory_is_suspected_before_the_launch_that_left_it_unwritten(
    compared: Runs,
) -> None:
    def run(rest: str) -> list[KernelLaunch]:
        into = arg("out_ptr", "out", "old", rest, storage=99)
        return [*unwritten(rest), launch(1, arg("in_ptr", "in", "x" + rest, storage=X), into, name="reader")]

    a, b = ([Result("output", plain(word))] for word in "12")

    _, (divergence,) = compared(a, b, launches=(run("a"), run("b")))

    assert isinstance(divergence, InputDiffers) and isinstance(divergence.cause, Uninitialised)
    assert divergence.cause.writer is not None and divergence.cause.writer.kernel_name == "partial"
