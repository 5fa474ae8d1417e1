"""Operators that a checkpoint calls twice, with the same state of the random generator.

AOTAutograd calls each operator that may draw random numbers, as attention, by another one that saves the
state in the forward, or restores it in the backward. Without it, these are calls of the operator itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tracing.store.graph_file import FxGraph, FxNode

_HIGHER = "torch.ops.higher_order."
SAVING = f"{_HIGHER}run_and_save_rng_state"  # gives the state and the result of the operator
_RESTORING = {  # the position of the operator among the arguments
    f"{_HIGHER}run_with_rng_state": 1,
    f"{_HIGHER}graphsafe_run_with_rng_state": 0,
}


def without_states(graph: FxGraph) -> FxGraph:
    """A graph in which operators are called themselves, instead of with a state that was saved."""
    if not any(node.target in _RESTORING for node in graph.nodes):
        return graph
    return msgspec.structs.replace(graph, nodes=[_plain(node) for node in graph.nodes])


def given_states(graph: FxGraph) -> dict[str, tuple[str, ...]]:
    """The input that is the generator, by the node that draws from it."""
    drawing = (node for node in graph.nodes if node.target == f"{_HIGHER}graphsafe_run_with_rng_state")
    named = ((node.name, dict((node.kwargs or {}).get("mapping", [])).get("rng_state")) for node in drawing)
    return {name: (state["node"],) for name, state in named if isinstance(state, Mapping) and "node" in state}


def saved_call(node: FxNode) -> FxNode:
    """The call of the operator whose state a node saves."""
    return _called(node, 0)


def saved_states(graph: FxGraph) -> frozenset[str]:
    """The nodes whose value is a saved state."""
    saving = [{"node": node.name} for node in graph.nodes if node.target == SAVING]
    return frozenset(
        node.name
        for node in graph.nodes
        if node.target == "_operator.getitem" and node.args[0] in saving and node.args[1] == 0
    )


def named_operator(argument: Any) -> str:
    """The operator that is an argument of a node, "aten::mm"; "": it is none."""
    text = argument.get("other", "") if isinstance(argument, Mapping) else ""
    namespace, _, name = str(text).partition(".")
    known = namespace.isidentifier() and all(one.isidentifier() for one in name.split("."))
    return f"{namespace}::{name.removesuffix('.default')}" if known else ""


def _plain(node: FxNode) -> FxNode:
    position = _RESTORING.get(node.target)
    return node if position is None else _called(node, position)


def _called(node: FxNode, position: int) -> FxNode:
    keywords = [one for one in (node.kwargs or {}).get("mapping", []) if one[0] != "rng_state"]
    kwargs = {"mapping": keywords} if keywords else None
    target, args = named_operator(node.args[position]), node.args[position + 1 :]
    return msgspec.structs.replace(node, target=target or node.target, args=args, kwargs=kwargs)
