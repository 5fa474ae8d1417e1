"""The kinds of constraints: of a node, of the tensors of a node, of a whole graph.

A constraint is a frozen dataclass, so that its repr is a Python expression for it, which records and repros
contain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch.fx import Graph, Node

from tracing.backend.node_values import operator_name, tensors_of, user_line
from tracing.model import Violation


@dataclass(frozen=True, slots=True)
class Rejection:
    """The reason why a constraint rejects something."""

    found: str
    required: str
    decided: bool = True  # False: as `Violation.decided`

    def at(self, node: Node, constraint: object) -> Violation:
        """The violation of a constraint at a node."""
        python, code = user_line(node)
        return Violation(
            repr(constraint), node.name, operator_name(node), self.found, self.required, self.decided, python,
            code,
        )  # fmt: skip


class NodeConstraint(ABC):
    """A constraint on one node of a graph."""

    @abstractmethod
    def check(self, node: Node) -> Violation | None:
        """The violation of a node, decided or not; None: the node is accepted.

        node -- of a graph after AOTAutograd: `meta["val"]` holds fake tensors
        """

    def unmatched(self, nodes: Sequence[Node]) -> Iterator[str]:
        """Text for each thing that the constraint names, and that none of the nodes has."""
        yield from ()


class TensorConstraint(NodeConstraint):
    """A constraint on each output tensor of a node; the readers of a rejected tensor are rejected, too."""

    @abstractmethod
    def finding(self, tensor: torch.Tensor) -> Rejection | None:
        """Why a tensor is rejected; None: it is accepted."""

    def applies_to(self, node: Node) -> bool:
        """False for nodes whose tensors are not checked."""
        return True

    def check(self, node: Node) -> Violation | None:
        """The first violation by the tensors of a node, preferably a decided one."""
        findings = []
        for position, tensor in tensors_of(node) if self.applies_to(node) else ():
            finding = self.finding(tensor)
            if finding is not None:
                of = "" if position is None else f"result {position}: "
                findings.append(Rejection(of + finding.found, finding.required, finding.decided))
        first = min(findings, key=lambda one: not one.decided, default=None)
        return first.at(node, self) if first is not None else None


class GraphConstraint(ABC):
    """A constraint on a whole graph."""

    @abstractmethod
    def check_graph(self, graph: Graph) -> Violation | None:
        """The violation of a graph, decided or not, at the node that explains it; None: it is accepted."""


Constraint: TypeAlias = NodeConstraint | GraphConstraint
