"""Constraints on operators: those that an accelerator supports, or lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from torch.fx import Node

from tracing.backend.constraints.constraint import NodeConstraint, Rejection
from tracing.backend.node_values import is_getitem, is_operator_call, operator_name
from tracing.backend.operator_names import OperatorName, key_of, keys_of
from tracing.model import Violation


@dataclass(frozen=True)
class _NamedOperators(NodeConstraint):
    operators: Collection[OperatorName]
    _names: dict[str, str] = field(init=False, repr=False, compare=False)  # by key: as the user named it

    def __post_init__(self) -> None:
        names = _by_key(self.operators)
        object.__setattr__(self, "operators", tuple(names.values()))
        object.__setattr__(self, "_names", names)


@dataclass(frozen=True)
class UnsupportedOpsConstraint(_NamedOperators):
    """No operator is one of these, however Dynamo, ATen or prims spell it (`tracing.backend.operator_names`).

    operators -- functions, operators or classes of modules of torch, or their names. A name that torch lacks
                 raises ValueError. A function or a module stands for all operators that it is made of
    """

    def check(self, node: Node) -> Violation | None:
        """The operator of a node, if it is one of these."""
        if not node.op.startswith("call_") or is_getitem(node):
            return None
        for key in keys_of(node):
            if key in self._names:
                name, asked = operator_name(node), self._names[key]
                text = name if name == asked else f"{name} of {asked}"
                return Rejection(text, f"no {asked}").at(node, self)
        return None

    def unmatched(self, nodes: Sequence[Node]) -> Iterator[str]:
        """The Triton kernels that no node launches: unlike those of torch, their names are not known."""
        called = {key for node in nodes if node.op.startswith("call_") for key in keys_of(node)}
        for key, asked in self._names.items():
            if key.startswith("triton.") and key not in called:
                yield f"no graph launches {asked}"


@dataclass(frozen=True)
class SupportedOpsConstraint(_NamedOperators):
    """Every operator that gives tensors is one of these, however it is spelled.

    operators -- as of `UnsupportedOpsConstraint`. Views have to be named, too: "aten.view", "aten.t"
    """

    def check(self, node: Node) -> Violation | None:
        """The operator of a node, unless it is one of these."""
        if not is_operator_call(node) or any(key in self._names for key in keys_of(node)):
            return None
        return Rejection(operator_name(node), f"one of {', '.join(self._names.values())}").at(node, self)


def _by_key(operators: Collection[OperatorName]) -> dict[str, str]:
    return {key_of(one): _written(one) for one in operators}


def _written(name: OperatorName) -> str:
    # chosen so that the name gives the same key
    if isinstance(name, str):
        return name
    if isinstance(name, type):
        return f"{name.__module__}.{name.__qualname__}"
    key = key_of(name)
    return key if key.startswith("triton.") or "<" in str(name) else str(name)
