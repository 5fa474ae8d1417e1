"""Properties of a node of an ATen graph: its tensors, its operator, and the user's line."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from tracing.program.user_code import is_users
from tracing.record.graphs.graph_nodes import python_frames
from tracing.upstream.inductor.user_kernels import launched_name

_NAMES = {"placeholder": "input", "get_attr": "constant", "output": "output"}


def nodes_of(graph: Graph, prefix: str = "") -> Iterator[tuple[str, Node]]:
    """The nodes of a graph and of the graphs that it calls, as branches of cond are, with unique names.

    A node of a called graph follows the node that holds the graph: "true_graph_0.add".
    """
    for node in graph.nodes:
        yield prefix + node.name, node
        if (called := called_graph(node)) is not None:
            yield from nodes_of(called, f"{prefix}{node.name}.")


def called_graph(node: Node) -> Graph | None:
    """The graph that a node holds for the operators that use the node: a branch, a body, a score function."""
    owner = node.graph.owning_module
    if node.op != "get_attr" or owner is None:
        return None
    held = getattr(owner, str(node.target), None)
    return held.graph if isinstance(held, GraphModule) else None


def tensors_of(node: Node) -> Iterator[tuple[int | str | None, torch.Tensor]]:
    """The output tensors of a node, with their positions or the parameters of a kernel; None: it has one.

    A `getitem` node has none: they belong to the node that computes them.
    """
    if node.op == "output" or is_getitem(node):
        return
    value = node.meta.get("val", node.meta.get("example_value"))
    if isinstance(value, torch.Tensor):
        yield None, value
    elif isinstance(value, (list, tuple)):
        yield from ((i, one) for i, one in enumerate(value) if isinstance(one, torch.Tensor))
    elif isinstance(value, dict):
        yield from ((name, one) for name, one in value.items() if isinstance(one, torch.Tensor))


def is_getitem(node: Node) -> bool:
    """True for a node that selects one of several values."""
    return node.op == "call_function" and node.target is operator.getitem


def is_operator_call(node: Node) -> bool:
    """True for a node that computes tensors; False for inputs, constants, and arithmetic on sizes."""
    return node.op.startswith("call_") and next(tensors_of(node), None) is not None


def is_view(node: Node) -> bool:
    """True for an operator whose result is memory of its argument, and for an input that is such a result."""
    target = node.meta.get("original_aten") if node.op == "placeholder" else node.target
    return bool(getattr(target, "is_view", False)) or "_unsafe_view" in str(target)


def called_operator(node: Node) -> Any:
    """The target of a node; for `with_effects`, which orders operators that print, the operator inside."""
    return node.args[1] if str(node.target) == "with_effects" else node.target


def operator_name(node: Node) -> str:
    """The operator of a node, "aten.addmm.default", "triton.my_kernel"; "input" or "constant" of a graph."""
    if node.op in _NAMES:
        return _NAMES[node.op]
    if (kernel := launched_name(node)) is not None:
        return f"triton.{kernel}"
    target: Any = called_operator(node)
    if isinstance(target, str):
        return target
    text = str(target)
    return getattr(target, "__name__", text) if "<" in text else text


def user_line(node: Node) -> tuple[str, str]:
    """The innermost line of the user's code that a node comes from: "model.py:12" and its text.

    That of an input is the line that first reads it. A module of torch that is compiled by itself has no line
    of the user: then the line is empty, and the text is "0.conv: Conv2d", the path of the module. Both are
    empty if neither is known.
    """
    frames = [frame for one in (node, *node.users) for frame in reversed(_frames(one))]
    chosen = next((frame for frame in frames if is_users(frame[0])), frames[0] if frames else None)
    if chosen is None:
        return "", next(filter(None, map(_module, (node, *node.users))), "")
    return f"{Path(chosen[0]).name}:{chosen[1]}", chosen[3]


def _module(node: Node) -> str:
    # Dynamo's path of a module is "L['fn'].0.conv"; a node of a backward has that of its forward
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    for path, module in [*stack.values()][-1:]:
        name = path.partition("]")[2].lstrip(".")
        kind = module.rpartition(".")[2] if isinstance(module, str) else module.__name__
        return f"{name}: {kind}" if name else kind
    return ""


def _frames(node: Node) -> list[list[Any]]:
    return python_frames(node.meta.get("stack_trace") or node.stack_trace or "")
