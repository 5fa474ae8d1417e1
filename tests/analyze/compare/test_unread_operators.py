"""Operators whose results no launch reads are compared: their arguments and, with digests, their results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
import torch
from handmade.records import INFO
from msgspec.structs import replace

from tracing import store
from tracing.analyze.align.alignment import WINDOW
from tracing.analyze.compare.cause_kinds import Host, OperatorCause
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.model import Outcome
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu

Then = Callable[[torch.Tensor], object]


@torch.library.custom_op("unread::counted", mutates_args=())
def counted(x: torch.Tensor) -> torch.Tensor:
    """Returns something else in each run."""
    counted.calls += 1  # type: ignore[attr-defined]
    return x + counted.calls  # type: ignore[attr-defined]


counted.calls = 0  # type: ignore[attr-defined]


Operators = Literal["none", "writers", "digests"]


def recorded(folder: Path, then: Then, operators: Operators, *, ended: bool = True) -> store.Run:
    """A run of a program that calls a compiled function, and then operators on what it returns."""
    writer = store.create(folder, replace(INFO, operators=operators))
    torch._dynamo.reset()
    with virtual_gpu():
        compiled, x = torch.compile(torch.sin), torch.ones(8)
        with LaunchRecorder(writer, operators=operators):
            then(compiled(x))
    if ended:
        writer.append(Outcome("ended", "exit status 0; 1 launch seen"))
    writer.close()
    return store.Run(writer.path)


def compared(folder: Path, a: Then, b: Then, operators: Operators = "digests") -> ComparisonVerdict:
    return verdict_of(*(recorded(folder, then, operators) for then in (a, b)))


def verdict_of(a: store.Run, b: store.Run) -> ComparisonVerdict:
    verdict = ComparisonVerdict.of(a, b, WINDOW)
    assert list(verdict) == []  # no launch differs
    return verdict


def test_a_call_on_another_part_of_a_storage_is_the_same_call(tmp_path: Path) -> None:
    def loss(start: int) -> Then:
        return lambda y: (torch.cat([y, y])[start : start + 8] * 2).sum()

    verdict = compared(tmp_path, loss(0), loss(8))

    assert verdict.status == 0 and not verdict.comparison.notes.notes


def times(number: int) -> Then:
    return lambda y: (y * number).sum()


def cause(verdict: ComparisonVerdict) -> OperatorCause:
    assert verdict.status == 1 and verdict.why is not None
    assert isinstance(verdict.why.cause, OperatorCause)
    return verdict.why.cause


@pytest.mark.parametrize("operators", ["writers", "digests"])
def test_another_argument_after_the_last_launch_differs(
    operators: Literal["writers", "digests"], tmp_path: Path
) -> None:
    verdict = compared(tmp_path, times(3), times(4), operators)

    one = cause(verdict)
    assert (one.names[0], one.arguments) == ("aten::mul.Tensor", ("other=3", "other=4"))
    assert [(result.a, result.b) for result in verdict.results] == [("(other=3)", "(other=4)")]


def test_other_results_of_equal_inputs_are_not_deterministic(tmp_path: Path) -> None:
    one = cause(compared(tmp_path, lambda y: counted(y).sum(), lambda y: counted(y).sum()))

    assert (one.names[1], one.not_deterministic, one.draws_others) == ("unread::counted", True, False)


def test_an_operator_that_draws_is_not_called_nondeterministic(tmp_path: Path) -> None:
    one = cause(compared(tmp_path, lambda y: torch.rand_like(y), lambda y: torch.rand_like(y)))

    assert (one.names[1], one.not_deterministic, one.draws_others) == ("aten::rand_like", False, True)


def test_an_input_that_nothing_recorded_wrote_is_not_compared(tmp_path: Path) -> None:
    def written(value: int) -> Then:
        def then(y: torch.Tensor) -> None:
            z = y * 2
            ctypes.memset(z.data_ptr(), value, 4)
            z.exp()

        return then

    verdict = compared(tmp_path, written(0x40), written(0x41))

    assert verdict.status == 2
    (note,) = verdict.comparison.notes.notes
    assert "aten::exp" in note and "reads other values" in note


def test_a_tensor_of_other_numbers_is_no_nondeterministic_operator(tmp_path: Path) -> None:
    verdict = compared(tmp_path, lambda y: torch.tensor([1.0]), lambda y: torch.tensor([2.0]))

    assert verdict.status == 1 and verdict.why is not None
    assert isinstance(verdict.why.cause, Host) and verdict.why.cause.made
    assert "aten::lift_fresh" in verdict.results[0].name


def test_equal_operators_are_equal_and_left_out_only_without_digests(tmp_path: Path) -> None:
    digested, without = (compared(tmp_path, times(3), times(3), one) for one in ("digests", "writers"))  # type: ignore[arg-type]

    assert (digested.status, without.status) == (0, 0)
    assert list(digested.comparison.notes.left_out) == []
    (left_out,) = without.comparison.notes.left_out
    assert "aten::sum" in left_out and "--operators digests" in left_out


def test_operators_that_no_run_recorded_are_not_called_equal(tmp_path: Path) -> None:
    verdict = compared(tmp_path, times(3), times(4), "none")

    assert verdict.status == 0  # as without digests of operators
    (left_out,) = verdict.comparison.notes.left_out
    assert "which neither run recorded" in left_out and "--operators digests" in left_out


def test_a_run_that_lacks_operators_is_not_said_to_call_them_less_often(tmp_path: Path) -> None:
    without, killed = recorded(tmp_path, times(3), "none"), recorded(tmp_path, len, "digests", ended=False)
    whole = recorded(tmp_path, times(3), "digests")

    for run, why in ((without, f"which {without.name} did not record"), (killed, "was interrupted")):
        verdict = verdict_of(run, whole)
        (note,) = verdict.comparison.notes.notes
        assert verdict.status == 2 and why in note


def test_operators_that_only_one_run_calls_are_named(tmp_path: Path) -> None:
    verdict = compared(tmp_path, times(3), lambda y: (y * 3).sum().neg())

    assert verdict.status == 2  # no launch reads what it computes
    assert ["aten::neg" in one for one in verdict.comparison.notes.notes] == [True]


def before_a_launch(first: Callable[[torch.Tensor], object]) -> Then:
    def then(y: torch.Tensor) -> None:
        first(y)
        torch.compile(torch.cos)(torch.ones(8))

    return then


def test_a_check_of_values_in_one_run_leaves_the_runs_equal(tmp_path: Path) -> None:
    verdict = compared(
        tmp_path, before_a_launch(lambda y: None), before_a_launch(lambda y: y.isnan()), "writers"
    )

    assert verdict.status == 0
    assert any("unequally often" in one for one in verdict.comparison.notes.left_out)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (lambda y: None, lambda y: torch.sum(y, 0, out=torch.empty(()))),
        (lambda y: None, lambda y: (y + 1).tolist()),
        (lambda y: y.add_(0.5), lambda y: (y.add_(0.5), y.add_(0.5))),
    ],
    ids=["an operator with out", "a value for the host", "an update made twice"],
)
def test_runs_are_not_equal_where_one_calls_operators_more_often(a: Then, b: Then, tmp_path: Path) -> None:
    verdict = compared(tmp_path, before_a_launch(a), before_a_launch(b), "writers")

    assert verdict.status == 2 and "unequally often" in " ".join(verdict.comparison.notes.notes)


def test_an_operator_of_one_run_before_an_unrelated_launch_is_not_compared(tmp_path: Path) -> None:
    verdict = compared(
        tmp_path, before_a_launch(lambda y: None), before_a_launch(lambda y: y[0:1].add_(0.5)), "writers"
    )

    assert verdict.status == 2
    (note,) = verdict.comparison.notes.notes
    assert "unequally often" in note and "aten::add_" in note


def test_an_operator_that_only_one_run_calls_is_the_cause(tmp_path: Path) -> None:
    digested, without = (
        compared(tmp_path, times(3), lambda y: (y.mul_(0.5) * 3).sum(), one)
        for one in ("digests", "writers")  # type: ignore[arg-type]
    )

    one = cause(digested)
    assert (one.names, one.arguments, one.runs) == (("", "aten::mul_.Tensor"), ("", "other=0.5"), "b")
    assert without.status == 2


def accumulated(*, cleared: bool) -> Then:
    def then(y: torch.Tensor) -> None:
        total = y * 1
        for clears in (cleared, True):
            total.add_(y)
            total.exp()
            if clears:
                total.mul_(0)

    return then


def test_memory_that_one_run_does_not_clear_differs(tmp_path: Path) -> None:
    one = cause(compared(tmp_path, accumulated(cleared=True), accumulated(cleared=False)))

    assert one.names == ("aten::mul_.Tensor", "aten::add_.Tensor")
    assert all(one.sites)


def test_operators_in_another_order_on_unlike_tensors_are_no_difference(tmp_path: Path) -> None:
    def negated(order: slice) -> Then:
        return lambda y: [one.neg() for one in [y.exp(), y.cos()][order]]

    verdict = compared(tmp_path, negated(slice(None)), negated(slice(None, None, -1)))

    assert verdict.status == 2


def test_the_last_writers_of_other_values_are_named_where_the_cause_is_not_known(tmp_path: Path) -> None:
    def updated(add_first: bool) -> Then:
        def then(y: torch.Tensor) -> None:
            for step in range(3):
                if add_first and step == 1:
                    y.add_(1.0).mul_(0.5)
                else:
                    y.mul_(0.5).add_(1.0)

        return then

    verdict = compared(tmp_path, updated(False), updated(True))

    (note,) = verdict.comparison.notes.notes
    assert verdict.status == 2
    assert note.count("aten::add_.Tensor, called at") == 2 and note.endswith(" in b")


def test_an_operator_that_one_run_calls_on_another_layout_is_not_only_in_that_run(tmp_path: Path) -> None:
    def product(*, upper: bool) -> Then:
        def then(y: torch.Tensor) -> None:
            left, right = y.reshape(2, 4) * 2, (y.reshape(2, 4) * 3).t()
            right = torch.triu(right, 1) if upper else right
            (left @ right).neg()

        return then

    one = cause(compared(tmp_path, product(upper=False), product(upper=True)))

    assert (one.names, one.runs) == (("", "aten::triu"), "b")


def test_what_the_host_changed_after_an_operator_of_one_run_is_not_that_operators(tmp_path: Path) -> None:
    def changed(value: int, *, more: bool) -> Then:
        def then(y: torch.Tensor) -> None:
            z = y * 2
            z = z.mul_(0.5) if more else z
            ctypes.memset(z.data_ptr(), value, 4)
            z.exp()

        return then

    verdict = compared(tmp_path, changed(0x40, more=False), changed(0x41, more=True))

    assert verdict.status == 2
