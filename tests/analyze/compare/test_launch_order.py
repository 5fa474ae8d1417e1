"""Reordered launches: which of them depend on each other because one writes bytes that another accesses."""

from __future__ import annotations

from collections.abc import Sequence

from tracing.analyze.compare.launch_order import LaunchOrder, Partners, ReorderedPair
from tracing.analyze.compare.timeline.timeline_step import TimelineStep
from tracing.digest.columns import Row
from tracing.model import Argument, Kernel, LaunchLine, Role, Signature, TensorMeta

KERNEL = Kernel(0, "k", "hash", "cuda:90", 4, 3, 1, {}, {})
Touched = tuple[str, Role, int, int]  # name, role, first byte, bytes


def step(index: int, *touched: Touched) -> TimelineStep:
    args = tuple(
        Argument(name, role, TensorMeta((count,), (1,), "uint8", "cpu")) for name, role, _, count in touched
    )
    signature = Signature(0, 0, (1, 1, 1), "forward", "cpu", args)
    addresses = [start for _, _, start, _ in touched]
    return TimelineStep(Row(LaunchLine(index, 0, 0, ())), KERNEL, signature, addresses, {})


def exchanges(
    *launches: Sequence[Touched], order: Sequence[int], equal: bool = False
) -> tuple[list[ReorderedPair], LaunchOrder]:
    """Pass launches in the order of run a to a LaunchOrder; `order` holds their indices in run b."""
    dependent, watch = [], LaunchOrder()
    for index, (touched, other) in enumerate(zip(launches, order, strict=True)):
        one = Partners(step(index, *touched), step(other, *touched), equal)
        dependent += watch.add(one, moved=index != other)
    return dependent, watch


WRITE, READ = ("out_ptr", "out", 0, 16), ("in_ptr", "in", 0, 16)


def test_a_reader_before_its_writer_is_an_order_that_matters() -> None:
    (exchange,), watch = exchanges([WRITE], [READ], order=[1, 0])

    assert (exchange.first.a.index, exchange.second.a.index) == (0, 1)
    assert exchange.arguments == ("out_ptr", "in_ptr")
    assert (exchange.shown, watch.independent) == (True, 0)


def test_two_writers_of_one_range_are_dependent() -> None:
    (exchange,), _ = exchanges([WRITE], [("other_ptr", "in_out", 8, 16)], order=[1, 0])

    assert exchange.arguments == ("out_ptr", "other_ptr")


def test_launches_that_only_read_the_same_bytes_are_independent() -> None:
    dependent, watch = exchanges([READ], [READ], order=[1, 0])

    assert (dependent, watch.independent) == ([], 1)


def test_adjacent_slices_of_one_storage_are_independent() -> None:
    dependent, watch = exchanges([WRITE], [("in_ptr", "in", 16, 16)], order=[1, 0])

    assert (dependent, watch.independent) == ([], 1)


def test_launches_in_equal_order_are_not_reordered() -> None:
    dependent, watch = exchanges([WRITE], [READ], [READ], order=[0, 1, 2])

    assert (dependent, watch.independent) == ([], 0)


def test_a_launch_that_moved_past_several_is_reordered_with_each() -> None:
    far = ("far_ptr", "out", 4096, 16)

    dependent, watch = exchanges([WRITE], [far], [READ], order=[1, 2, 0])

    assert [(one.first.a.index, one.second.a.index) for one in dependent] == [(0, 2)]
    assert watch.independent == 1


def test_an_order_that_shows_only_in_shared_bytes_is_marked() -> None:
    (exchange,), watch = exchanges([WRITE], [("other_ptr", "out", 0, 16)], order=[1, 0], equal=True)

    assert (exchange.shown, watch.independent) == (False, 1)
