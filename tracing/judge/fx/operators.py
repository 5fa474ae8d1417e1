"""The operators that nodes of a recorded graph name, and what they read, write and alias."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from tracing.judge.fx import higher_order, random_numbers
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.fx.saved_states import SAVING, saved_call
from tracing.store.graph_file import FxGraph, FxNode
from tracing.upstream.torch.fused_attention import state_results, unwritten_results
from tracing.upstream.torch.operator_schemas import (
    OWN_NAMESPACES,
    draws,
    is_operator,
    schema_of,
    written_arguments,
)

_MODULES: Mapping[str, Any] = {"_operator": operator, "operator": operator, "math": math, "torch": torch}
_HIGHER, _KERNEL = "torch.ops.higher_order.", "triton_kernel_wrapper"
_REFUSED = ("aten::from_file",)  # a graph may come from an untrusted run
_CALLERS = ("attrgetter", "call", "__call__", "itemgetter", "methodcaller")  # they reach any function
_SEEDS = ("prims::inductor_seed", "prims::inductor_seeds")
_RANDOM = (*_SEEDS, "prims::inductor_random", "prims::inductor_randint")
_UNDECLARED_VIEWS = ("aten::_unsafe_view",)
_EMPTY = ("aten::empty", "aten::new_empty", "prims::empty")


def resolved(node: FxNode) -> Callable[..., Any]:
    """The function that a node calls; raises NoReference if this process has none."""
    target = node.target
    if target == "prims::convert_element_type":  # vmap, by which a score_mod is executed, is slow for it
        return lambda x, dtype: x.to(dtype, copy=True)
    if (drawing := random_numbers.FUNCTIONS.get(target.partition(".")[0])) is not None:
        return drawing
    if "::" in target and target not in _REFUSED:
        namespace, _, name = target.partition("::")
        packet, _, overload = name.partition(".")
        try:
            packets = getattr(torch.ops, namespace)
            operation: Callable[..., Any] = getattr(getattr(packets, packet), overload or "default")
        except (AttributeError, RuntimeError):
            raise NoReference(f"{target}, which only the program registers") from None
        if not is_operator(operation):  # torch.ops.load_library
            raise NoReference(f"{target}, which is no operator")
        return operation
    if target.startswith(_HIGHER) and target.removeprefix(_HIGHER) in higher_order.FUNCTIONS:
        return higher_order.FUNCTIONS[target.removeprefix(_HIGHER)]
    module, _, name = target.rpartition(".")
    owner = _MODULES.get(module)
    plain = owner is not None and (module != "torch" or name.startswith("sym_")) and name not in _CALLERS
    if not plain or not hasattr(owner, name):
        own = name.startswith(_KERNEL)
        raise NoReference("a hand-written kernel" if own else f"{name}, which is no operator")
    function: Callable[..., Any] = getattr(owner, name)
    return function


def is_random(node: FxNode) -> bool:
    """True if an operator draws random numbers, or a graph that it executes."""
    if node.graph is not None:
        return any(map(is_random, node.graph.nodes))
    if node.target == SAVING:
        return is_random(saved_call(node))
    if node.target.partition(".")[0] in _RANDOM:
        return True
    function = _operator(node)
    return function is not None and draws(function, node.args, node.kwargs or {})


def states(graph: FxGraph) -> dict[str, tuple[str, ...]]:
    """The nodes of the state from which a generator draws, by the node that draws: attention on a GPU."""
    drawing = {node.name: results for node in graph.nodes if (results := _state_results(node))}
    parts = {
        (node.args[0]["node"], node.args[1]): node.name
        for node in graph.nodes
        if node.target == "_operator.getitem" and isinstance(node.args[0], Mapping) and "node" in node.args[0]
    }
    return {
        name: tuple(parts[name, one] for one in positions)
        for name, positions in drawing.items()
        if all((name, one) in parts for one in positions)
    }


def unwritten(graph: FxGraph) -> frozenset[str]:
    """The nodes of results of attention that it does not write, as the state if it draws nothing."""
    positions = {
        node.name: unwritten_results(function, draws=is_random(node))
        for node in graph.nodes
        if (function := _operator(node)) is not None
    }
    return frozenset(
        node.name
        for node in graph.nodes
        if node.target == "_operator.getitem" and isinstance(node.args[0], Mapping)
        if node.args[1] in positions.get(node.args[0].get("node", ""), ())
    )


def _state_results(node: FxNode) -> tuple[int, ...]:
    function = _operator(node)
    return state_results(function) if function is not None and is_random(node) else ()


def is_seed(node: FxNode) -> bool:
    """True if an operator draws seeds, from which kernels generate their random numbers."""
    called = saved_call(node) if node.target == SAVING else node
    return called.target.partition(".")[0] in _SEEDS


def is_generated(node: FxNode) -> bool:
    """True if the random numbers that an operator draws follow from its arguments."""
    return node.target.partition(".")[0] in random_numbers.FUNCTIONS


def is_empty(node: FxNode) -> bool:
    """True if an operator's result is uninitialised; a tensor without elements never is."""
    if node.graph is not None:
        return any(map(is_empty, node.graph.nodes))
    return node.target.startswith(_EMPTY) and not _has_no_elements(node.value)


def is_custom(node: FxNode) -> bool:
    """True if a node calls an operator that is not torch's own: of the program, or of another library."""
    namespace, separator, _ = node.target.partition("::")
    return node.op == "call_function" and separator != "" and namespace not in OWN_NAMESPACES


def is_pointwise(node: FxNode) -> bool:
    """True if each element of a node's result depends on that element of its operands only."""
    return torch.Tag.pointwise in getattr(resolved(node), "tags", ())


def _has_no_elements(value: Any) -> bool:
    return isinstance(value, Mapping) and 0 in (value.get("shape") or ())


def executes_graphs(node: FxNode) -> bool:
    """True for an operator that executes graphs of its own: cond, while_loop, flex_attention."""
    kernel = node.target.removeprefix(_HIGHER).startswith(_KERNEL)
    return node.target.startswith(_HIGHER) and not kernel and node.target != SAVING


def callers_of_graphs(nodes: Iterable[FxNode]) -> list[str]:
    """The operators of nodes that execute graphs of their own: cond, while_loop."""
    return [node.target.removeprefix(_HIGHER) for node in nodes if executes_graphs(node)]


def references(value: Any) -> Iterator[str]:
    """The nodes that an argument refers to."""
    if isinstance(value, Mapping):
        if "node" in value:
            yield value["node"]
        else:
            for one in value.values():
                yield from references(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from references(one)


def ancestors(nodes: Mapping[str, FxNode], names: Iterable[str]) -> set[str]:
    """The nodes that some nodes are computed from, and these."""
    left, needed = [*names], set[str]()
    while left:
        name = left.pop()
        if name not in needed and name in nodes:
            needed.add(name)
            left += references([nodes[name].args, nodes[name].kwargs])
    return needed


def viewed(node: FxNode) -> str | None:
    """The node of which an operator gives a view; None: it gives none."""
    function = _operator(node)
    if function is None:
        return None
    returns = schema_of(function).returns
    if not returns or not all(one.alias_info and not one.alias_info.is_write for one in returns):
        return None
    return next(references(node.args), None)


def allocates(node: FxNode) -> bool:
    """True if a node calls an operator of torch's own that returns new memory, as its schema says."""
    function = _operator(node)
    if function is None or is_custom(node) or node.target.startswith(_UNDECLARED_VIEWS):
        return False
    return all(one.alias_info is None for one in schema_of(function).returns)


def returned(node: FxNode) -> str | None:
    """The node that an operator overwrites and returns: the two are one tensor; None: it returns another."""
    function = _operator(node)
    if function is None:
        return None
    returns = schema_of(function).returns
    written = overwritten(node)
    aliases = len(returns) == 1 and returns[0].alias_info and returns[0].alias_info.is_write
    return written[0] if aliases and len(written) == 1 else None


def written_element(node: FxNode, nodes: Mapping[str, FxNode]) -> str | None:
    """The node that a node gives as one of those which an operator overwrites; None: it gives none of these.

    Inductor makes _foreach_add, which returns a list, _foreach_add_, which returns nothing, and keeps the
    nodes that take the elements of the list.
    """
    if node.target != "_operator.getitem" or not isinstance(node.args[0], Mapping):
        return None
    source, position = nodes.get(node.args[0].get("node", "")), node.args[1]
    function = _operator(source) if source is not None else None
    if source is None or function is None or schema_of(function).returns or not source.args:
        return None
    written = source.args[0]
    listed = isinstance(written, list) and isinstance(position, int) and position < len(written)
    element = next(references(written[position]), None) if listed else None
    return element if element in overwritten(source) else None


def overwritten(node: FxNode) -> tuple[str, ...]:
    """The nodes whose memory a node writes to."""
    if node.written is not None:
        return tuple(node.written)
    if f"{_KERNEL}_mutation" in node.target:  # of a run that does not say which
        return tuple(references([node.args, node.kwargs]))
    function = _operator(node)
    # an operator that this process does not know, of a run that does not say what it writes, may write all
    if function is None:
        return tuple(references([node.args, node.kwargs])) if is_custom(node) else ()
    keywords = dict((node.kwargs or {}).get("mapping", []))
    return tuple(references(written_arguments(function, node.args, keywords)))


def _operator(node: FxNode) -> Any:
    if node.op != "call_function" or "::" not in node.target:
        return None
    try:
        function = resolved(node)
    except NoReference:
        return None
    return function if is_operator(function) else None
