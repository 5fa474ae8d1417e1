"""The kinds of constraints: of a node, of the tensors of a node, of a whole graph.

A constraint is a frozen dataclass, so that its repr is Python that makes it: records and repros hold that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch.fx import Graph, Node

from tracing.backend.node_values import operator_name, tensors_of, user_line
from tracing.model import Violation


@dataclass(frozen=True, slots=True)
class Objection:
    """What a constraint says of something that it does not accept as it is."""

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
    """A question about one node of a graph."""

    @abstractmethod
    def check(self, node: Node) -> Violation | None:
        """The violation of a node, decided or not; None: the node is accepted.

        node -- of a graph after AOTAutograd: `meta["val"]` holds fake tensors
        """


class TensorConstraint(NodeConstraint):
    """A question about each tensor that a node gives; what reads a refused tensor is refused, too."""

    @abstractmethod
    def finding(self, tensor: torch.Tensor) -> Objection | None:
        """What is wrong with a tensor; None: nothing."""

    def applies_to(self, node: Node) -> bool:
        """False for nodes whose tensors are not looked at."""
        return True

    def check(self, node: Node) -> Violation | None:
        """The first violation of the tensors of a node; one that is decided before one that is not."""
        findings = []
        for position, tensor in tensors_of(node) if self.applies_to(node) else ():
            finding = self.finding(tensor)
            if finding is not None:
                of = "" if position is None else f"result {position}: "
                findings.append(Objection(of + finding.found, finding.required, finding.decided))
        first = min(findings, key=lambda one: not one.decided, default=None)
        return first.at(node, self) if first is not None else None


class GraphConstraint(ABC):
    """A question about a whole graph."""

    @abstractmethod
    def check_graph(self, graph: Graph) -> Violation | None:
        """The violation of a graph, decided or not, at the node that explains it; None: it is accepted."""


Constraint: TypeAlias = NodeConstraint | GraphConstraint
