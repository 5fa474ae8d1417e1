"""Compute how many bytes of tensors are alive at each operator of a graph.

The graph is assumed to execute in its order. An input, a constant and what the graph returns are alive to its
end: the caller holds them. Any other memory is alive from the operator that allocates it to the last that
reads it, also through a view. While a backward runs, the inputs and results of its forward are alive, too,
whether it reads them or not; what the forward saved for it, and gradients that it reads, are alive to their
last reader. Internal allocations of an operator (workspaces, copies) and the rounding of the allocator are
not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.fx import Graph, Node

from tracing.backend.node_values import is_operator_call
from tracing.upstream.inductor.backend_compile import forward_nodes
from tracing.upstream.torch.tensor_subclasses import storage_key


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The bytes that are alive while one operator runs."""

    node: Node
    total: int | torch.SymInt  # bytes
    tensors: int  # that have memory of their own


@dataclass(slots=True)
class _Lifetime:
    size: int | torch.SymInt  # bytes
    first: int  # positions of nodes
    last: int


def memory_use(graph: Graph) -> Iterator[MemoryUse]:
    """The bytes that are alive at each operator, in the order of the graph.

    Costs one addition for each operator and tensor that is alive there.
    """
    nodes = list(graph.nodes)
    lifetimes = _lifetimes(nodes, forward_nodes(graph))
    for position, node in enumerate(nodes):
        if is_operator_call(node):
            alive = [one for one in lifetimes if one.first <= position <= one.last]
            total: int | torch.SymInt = 0
            for one in alive:
                total = total + one.size
            yield MemoryUse(node, total, len(alive))


def peak(graph: Graph) -> MemoryUse | None:
    """The operator at which most bytes are alive; None: a graph without operators. Sizes are concrete."""
    return max(memory_use(graph), key=lambda use: int(use.total), default=None)


def _lifetimes(nodes: list[Node], forward: Sequence[Node]) -> list[_Lifetime]:
    position = {node: number for number, node in enumerate(nodes)}
    inputs = {node.name for node in nodes if node.op == "placeholder"}
    ours = {node.name for node in forward if node.op == "placeholder"}
    by_storage: dict[int, _Lifetime] = {}
    for number, node in enumerate(nodes):
        read = max((position[user] for user in node.users), default=number)
        returned = any(user.op == "output" for user in node.users)
        last = len(nodes) if returned or _is_callers(node, ours, bool(forward)) else read
        _add(by_storage, node, -1 if node.op in ("placeholder", "get_attr") else number, last)
    for node in forward:
        if node.name not in inputs:
            _add(by_storage, node, -1, len(nodes))
    return list(by_storage.values())


def _is_callers(node: Node, inputs: set[str], backward: bool) -> bool:
    # True if the caller of the forward, or of a graph that is no backward, holds a tensor
    return node.op == "get_attr" or (node.op == "placeholder" and (not backward or node.name in inputs))


def _add(by_storage: dict[int, _Lifetime], node: Node, first: int, last: int) -> None:
    for tensor in _values(node):
        storage = tensor.untyped_storage()
        lifetime = by_storage.setdefault(storage_key(storage), _Lifetime(storage.nbytes(), first, last))
        lifetime.first, lifetime.last = min(lifetime.first, first), max(lifetime.last, last)


def _values(node: Node) -> list[torch.Tensor]:
    # tensors with memory; those that a node selects of several count, too: one may live longer than the
    # others
    value = node.meta.get("val")
    values = (
        value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
    )
    return [one for one in values if isinstance(one, torch.Tensor) and one.layout is torch.strided]
