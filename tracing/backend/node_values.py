"""Properties of a node of an ATen graph: its tensors, its operator, and the user's line."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.fx import Node

from tracing.program.user_code import is_users
from tracing.record.graph_nodes import python_frames

_NAMES = {"placeholder": "input", "get_attr": "constant", "output": "output"}


def tensors_of(node: Node) -> Iterator[tuple[int | None, torch.Tensor]]:
    """The output tensors of a node, with their positions; None: it has one output.

    A `getitem` node has none: they belong to the node that computes them.
    """
    if node.op == "output" or is_getitem(node):
        return
    value = node.meta.get("val", node.meta.get("example_value"))
    if isinstance(value, torch.Tensor):
        yield None, value
    elif isinstance(value, (list, tuple)):
        yield from ((i, one) for i, one in enumerate(value) if isinstance(one, torch.Tensor))


def is_getitem(node: Node) -> bool:
    """True for a node that selects one of several values."""
    return node.op == "call_function" and node.target is operator.getitem


def is_operator_call(node: Node) -> bool:
    """True for a node that computes tensors; False for inputs, constants, and arithmetic on sizes."""
    return node.op.startswith("call_") and next(tensors_of(node), None) is not None


def is_view(node: Node) -> bool:
    """True for an operator whose result is memory of its argument."""
    return bool(getattr(node.target, "is_view", False)) or "_unsafe_view" in str(node.target)


def operator_name(node: Node) -> str:
    """The operator of a node, "aten.addmm.default"; "input" or "constant" of a graph."""
    if node.op in _NAMES:
        return _NAMES[node.op]
    target: Any = node.target
    if isinstance(target, str):
        return target
    text = str(target)
    return getattr(target, "__name__", text) if "<" in text else text


def user_line(node: Node) -> tuple[str, str]:
    """The innermost line of the user's code that a node comes from: "model.py:12" and its text.

    That of an input is the line that first reads it. Both are empty if none is known.
    """
    frames = [frame for one in (node, *node.users) for frame in reversed(_frames(one))]
    chosen = next((frame for frame in frames if is_users(frame[0])), frames[0] if frames else None)
    return (f"{Path(chosen[0]).name}:{chosen[1]}", chosen[3]) if chosen else ("", "")


def _frames(node: Node) -> list[list[Any]]:
    return python_frames(node.meta.get("stack_trace") or node.stack_trace or "")
