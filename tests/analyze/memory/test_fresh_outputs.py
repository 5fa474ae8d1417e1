"""Outputs of a launch in memory that nothing had written."""

from __future__ import annotations

from pathlib import Path

from handmade.records import arg, launch
from handmade.runs import Operators, saved

from tracing.analyze.memory.fresh_outputs import fresh_outputs
from tracing.model import Selection

FIRST = launch(0, arg("x", "in", "a", storage=1), arg("y", "out", "b", storage=2))
SECOND = launch(1, arg("x", "in", "a", storage=1), arg("y", "out", "b", storage=2))


def allocated(after: int) -> Operators:
    calls = Operators().call(0, "aten::rand", writes=[1])
    return calls.call(after, "aten::empty", writes=[2], allocates=True)


def test_an_output_is_fresh_until_a_launch_writes_it(tmp_path: Path) -> None:
    run = saved(tmp_path, [FIRST, SECOND], allocated(0).records)

    assert fresh_outputs(run, 0, FIRST) == {1}
    assert fresh_outputs(run, 0, SECOND) == frozenset()


def test_memory_that_is_allocated_anew_is_fresh_once_more(tmp_path: Path) -> None:
    run = saved(tmp_path, [FIRST, SECOND], allocated(1).records)

    assert fresh_outputs(run, 0, FIRST) == frozenset()
    assert fresh_outputs(run, 0, SECOND) == {1}


def test_an_output_that_an_operator_filled_is_not_fresh(tmp_path: Path) -> None:
    run = saved(tmp_path, [FIRST], allocated(0).call(0, "aten::fill_", writes=[2]).records)

    assert fresh_outputs(run, 0, FIRST) == frozenset()


def test_nothing_is_known_of_a_run_that_leaves_out_launches(tmp_path: Path) -> None:
    run = saved(tmp_path, [SECOND], allocated(0).records, selection=Selection(launches=(1, 2)))

    assert fresh_outputs(run, 0, SECOND) == frozenset()
