"""Operators that an accelerator lacks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from torch.fx import Node

from tracing.backend.constraints.constraint import Finding, NodeConstraint
from tracing.backend.node_values import is_getitem, operator_name
from tracing.backend.operator_names import OperatorName, key_of, keys_of
from tracing.model import Violation


@dataclass(frozen=True)
class UnsupportedOpsConstraint(NodeConstraint):
    """No operator is one of these, however Dynamo, ATen or prims spell it (`tracing.backend.operator_names`).

    operators -- functions, operators or classes of modules of torch, or their names. A name that torch lacks
                 raises ValueError. A function or a module stands for all operators that it is made of
    """

    operators: Collection[OperatorName]
    _names: dict[str, str] = field(init=False, repr=False, compare=False)  # by key: as the user named it

    def __post_init__(self) -> None:
        names = {key_of(one): _written(one) for one in self.operators}
        object.__setattr__(self, "operators", tuple(names.values()))
        object.__setattr__(self, "_names", names)

    def check(self, node: Node) -> Violation | None:
        """The operator of a node, if it is one of these."""
        if not node.op.startswith("call_") or is_getitem(node):
            return None
        for key in keys_of(node):
            if key in self._names:
                text = f"{operator_name(node)} of {self._names[key]}"
                return Finding(text, f"no {self._names[key]}").at(node, self)
        return None


def _written(name: OperatorName) -> str:
    # such that the name gives the same key
    if isinstance(name, str):
        return name
    if isinstance(name, type):
        return f"{name.__module__}.{name.__qualname__}"
    return str(name) if "<" not in str(name) else str(getattr(name, "__name__", name))
