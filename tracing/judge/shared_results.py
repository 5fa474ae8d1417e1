"""Find results of a call of a graph that share memory although the graph says that they do not.

Each has the right value when the call returns; a program that then writes to one changes both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tracing.analyze.judge.findings import GENERATED, PASSES, SharedResult
from tracing.judge.fx.fx_program import FxProgram
from tracing.model import GraphCall, SharedBytes


def shared_results(
    call: GraphCall, traced: FxProgram, lowered: FxProgram, *, backward: bool
) -> Iterator[SharedResult]:
    """The results of a call that share memory with a result, or with an input, that they are no view of.

    traced, lowered -- the graph as Inductor received it, and as its passes left it
    backward        -- of its inputs, those that the forward saved are its own
    """
    known: set[frozenset[str]] = set()  # pairs of nodes
    for one in call.shared:
        if backward and one.side == "input":
            continue
        node, other = _nodes(one, traced)
        if not (node and other and _apart(node, other, traced)):
            continue
        roots = frozenset(map(traced.root, (node, other)))
        if roots in known:
            continue
        known.add(roots)
        left, also_left = _nodes(one, lowered)
        merged = left and also_left and lowered.root(left) == lowered.root(also_left)
        yield SharedResult(
            call.graph, f"output {one.output}", node, f"{one.side} {one.other}", other,
            PASSES if merged else GENERATED, traced.lines([node]),
        )  # fmt: skip


def _nodes(one: SharedBytes, program: FxProgram) -> tuple[str, str]:
    # "": no tensor of the graph
    outputs = [str(each["node"]) if isinstance(each, Mapping) else "" for each in program.outputs]
    others = program.inputs if one.side == "input" else outputs
    known = one.output < len(outputs) and one.other < len(others)
    return (outputs[one.output], others[one.other]) if known else ("", "")


def _apart(node: str, other: str, program: FxProgram) -> bool:
    # inputs may share memory with each other, and an input that the graph overwrites with its results; and
    # results of one operator, as a recurrent layer's, which it does not declare
    root, root_of_other = program.root(node), program.root(other)
    if program.maker(root) == program.maker(root_of_other) or not program.allocates(root):
        return False
    if root_of_other in program.inputs:
        return root_of_other == other and other not in program.writers
    return program.allocates(root_of_other)
