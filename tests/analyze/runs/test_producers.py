"""The launches and operators that a launch's inputs come from."""

from __future__ import annotations

from pathlib import Path

from handmade.records import arg, launch
from handmade.runs import Operators, saved

from tracing.analyze.runs.producers import DEPTH, producers


def test_producers_pass_through_operators_and_name_the_argument_that_read_them(tmp_path: Path) -> None:
    first = launch(0, arg("x", "in", "x", storage=1), arg("y", "out", "-", "y", storage=2), name="first")
    last = launch(1, arg("z", "in", "z", storage=3), name="last")
    copied = Operators().call(1, "aten::clone", reads=[2], writes=[3])
    run = saved(tmp_path, [first, last], copied.records)

    graph = producers(run, 0, {1})[1]

    assert [(one.kind, one.name) for one in graph.nodes] == [
        ("launch", "last"), ("operator", "aten::clone"), ("launch", "first"),
    ]  # fmt: skip
    assert [(one.writer, one.reader, one.argument) for one in graph.edges] == [(1, 0, "z"), (2, 1, "input 0")]
    assert not graph.cut


def test_a_long_chain_is_cut(tmp_path: Path) -> None:
    chain = [
        launch(n, arg("x", "in", "x", storage=n), arg("y", "out", "-", "y", storage=n + 1)) for n in range(20)
    ]

    graph = producers(saved(tmp_path, chain), 0, {19})[19]

    assert len(graph.nodes) == DEPTH + 1
    assert graph.cut


def test_a_buffer_that_a_launch_only_writes_has_no_producer(tmp_path: Path) -> None:
    both = [launch(n, arg("y", "out", "-", "y", storage=1)) for n in range(2)]

    assert [one.index for one in producers(saved(tmp_path, both), 0, {1})[1].nodes] == [1]
