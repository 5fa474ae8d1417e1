"""Finds the nodes of a compiled graph that may have made some of its results wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from tracing.analyze.judge.findings import SharedResult, TracedOff
from tracing.judge.contents import Contents
from tracing.judge.fx.operators import ancestors
from tracing.judge.traced.traced_referee import TracedFindings
from tracing.model import GraphCall
from tracing.store.graph_file import FxGraph, FxNode


def located(
    judged: TracedFindings, inner: Sequence[GraphCall], graph: FxGraph, contents: Contents
) -> Iterator[TracedOff | SharedResult]:
    """What is off, with the lines of the program that the suspect nodes come from, if there are any.

    inner -- the calls of compiled graphs in what was judged
    graph -- that of the last one, whose results are known by their contents
    """
    off = {one.wrong.name for one in judged.off if isinstance(one, TracedOff)}
    wrong: list[str] = []
    right: list[str] = []
    for position, result in enumerate(_results(graph)):
        content = contents.of_graph(inner[-1].index, position, "output") if inner else None
        for name, one in judged.contents.items() if result else ():
            if one == content:
                (wrong if name in off else right).append(result)
    lines = graph.lines_of(suspect_nodes(graph, wrong, right))
    for finding in judged.off:
        unknown = isinstance(finding, TracedOff) and not finding.first
        yield replace(finding, lines=lines) if lines and unknown else finding


def _results(graph: FxGraph) -> list[str]:
    # the nodes of the results; "": of a number, or of None
    *_, last = graph.nodes
    results = last.args[0] if last.op == "output" and last.args else []
    return [str(one.get("node", "")) if isinstance(one, Mapping) else "" for one in results]


def suspect_nodes(graph: FxGraph, off: Sequence[str], right: Collection[str]) -> list[FxNode]:
    """The nodes on which each result that is off depends and no right one, in the order of the graph.

    off, right -- the nodes of these results

    Empty if there are none, as with several causes.
    """
    if not off:
        return []
    known = {node.name: node for node in graph.nodes}
    needed = set.intersection(*(ancestors(known, [one]) for one in off)) - ancestors(known, right)
    return [one for one in graph.nodes if one.name in needed and one.op != "placeholder"]
