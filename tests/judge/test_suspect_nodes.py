"""The nodes that may have made results of a graph wrong."""

from __future__ import annotations

from typing import Any

from tracing.judge.traced.suspect_nodes import suspect_nodes
from tracing.store.graph_file import FxGraph, FxNode


def node(name: str, *read: str) -> FxNode:
    args: list[Any] = [{"node": one} for one in read]
    return FxNode(name, "call_function" if read else "placeholder", "aten::add.Tensor", args)


READ = {"x": "", "a": "x", "b": "a", "c": "bx", "d": "b", "e": "a"}
GRAPH = FxGraph([node(name, *read) for name, read in READ.items()])


def names(off: list[str], right: list[str]) -> list[str]:
    return [one.name for one in suspect_nodes(GRAPH, off, right)]


def test_all_results_that_are_off_depend_on_a_suspect_and_no_right_one() -> None:
    assert names(["c", "d"], ["e"]) == ["b"]
    assert names(["c"], ["e"]) == ["b", "c"]
    assert names(["c", "d"], []) == ["a", "b"]


def test_without_such_a_node_there_is_no_suspect() -> None:
    assert names([], ["e"]) == []
    assert names(["c", "e"], ["d"]) == []
