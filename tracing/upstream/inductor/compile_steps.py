"""The interface by which a compile decides about each step: a graph pass, a lowering, a fusion."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch._inductor import ir

from tracing.upstream.contract import require

_LINE = re.compile(r'File "([^"]+)", line (\d+)')


class StepChoice(Protocol):
    """Decides which steps a compile makes; parts are "lowerings", "fusion", ..."""

    def make(
        self, part: str, label: str, *, kind: str = "", detail: str = "", nodes: Sequence[str] = ()
    ) -> bool:
        """Record a step; True if the compile makes it.

        kind  -- identifies steps of one kind, for example by the lowered operator; "": the label
        nodes -- the FX nodes of the step
        """

    def open(self, part: str) -> bool:
        """True if the next step of a part is made, unless its label says otherwise."""

    def left_out(self, part: str) -> list[str]:
        """The labels of the steps that are left out, whatever their number is."""

    def only(self, part: str) -> list[str] | None:
        """The labels of the only steps that are made; None: no such choice."""


def node_text(node: Any) -> str:
    """An FX node for people: "aten.mul.Tensor at model.py:12"."""
    line = _LINE.findall(node.meta.get("stack_trace") or "")
    where = f" at {line[-1][0].rsplit('/', 1)[-1]}:{line[-1][1]}" if line else ""
    return f"{target_text(node)}{where}"


def target_text(node: Any) -> str:
    """What an FX node calls: "aten.mul.Tensor", or the name of a function of Inductor."""
    return str(getattr(node.target, "__name__", "")) if inspect.isfunction(node.target) else str(node.target)


def origins_of(node: Any) -> list[str]:
    """The FX nodes that an operation of Inductor's IR, or a node of its scheduler, stands for."""
    parts = node.get_nodes() if hasattr(node, "get_nodes") else [node]
    operations = (getattr(one, "node", one) for one in parts)
    return sorted({origin.name for one in operations if one is not None for origin in one.origins})


def is_inlined(result: Any) -> bool:
    """True if a lowered node is computed where it is read, and has no memory of its own."""
    while isinstance(result, (ir.TensorBox, ir.BaseView)):
        result = result.data
    return isinstance(result, ir.StorageBox) and isinstance(result.data, ir.Loops)


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    graph = torch.fx.symbolic_trace(lambda x: x + 1).graph
    require("add" in "".join(node_text(one) for one in graph.nodes), "the target of an FX node")
    require(hasattr(ir.IRNode, "current_origins"), "the FX nodes that IR stands for")
