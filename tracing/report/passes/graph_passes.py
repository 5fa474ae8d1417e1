"""The passes of torch.compile over one graph, for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.text import Text

from tracing.analyze.graphs.graph_names import alike
from tracing.analyze.graphs.graph_pass_table import GraphPass
from tracing.analyze.line_matching import unified_diff
from tracing.report.passes.passes import DIFF_STYLES, columns
from tracing.report.text import Line


def graph_passes_text(label: str, passes: Iterable[GraphPass]) -> Iterator[Line]:
    """A table, a pass a line. `before` and `after` count nodes.

    label -- of the graph: "graph 0/0 forward"
    """
    yield Text(label)
    rows = [("index", "stage", "pass", "changed", "before", "after", "code")]
    rows += [
        (str(one.index), one.stage, one.name, "yes" if one.changed else "no",
         str(one.nodes[0]), str(one.nodes[1]), one.code)
        for one in passes
    ]  # fmt: skip
    yield from columns(rows, "rlllrrl")


def graph_pass_text(label: str, one: GraphPass, before: str, after: str) -> Iterator[Line]:
    """What a pass changes, as a diff; new names of nodes are ignored."""
    yield Text(f"{label}, {pass_label(one)}{f', {one.code}' if one.code else ''}")
    if not one.changed:
        yield Text("it does not change the graph")
    for line in graph_diff(before, after):
        yield Text(line, style=DIFF_STYLES.get(line[0], ""))


def graph_diff(before: str, after: str) -> list[str]:
    """A unified diff of two texts of a graph, whose nodes have equal names where they correspond."""
    ours, theirs = alike(before, after)
    return list(unified_diff(ours.splitlines(), theirs.splitlines(), ("before", "after")))


def pass_label(one: GraphPass) -> str:
    """For people: "joint pass remove_noop_ops (#12)"."""
    label = one.stage if one.name == one.stage else f"{one.stage} pass {one.name}"
    return f"{label} (#{one.index})"


def graph_pass_json(one: GraphPass) -> dict[str, Any]:
    """The facts about a pass; keys as in docs/json.md."""
    before, after = one.nodes
    nodes = {"before": before, "after": after}
    return {
        "index": one.index, "stage": one.stage, "name": one.name, "code": one.code,
        "changed": one.changed, "nodes": nodes,
    }  # fmt: skip
