"""Graphs that a backend checked against constraints, with violations, coverage and times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from tracing.model.record import Blob, Record

GraphKind: TypeAlias = Literal["forward", "backward", "inference"]


class CheckedGraph(Record, frozen=True, file="checkedgraphs"):
    """An ATen graph that a backend of `tracing.backend` checked."""

    id: int  # in the order of the checks of this process, from 0
    backend: str  # "mock_backend"
    kind: GraphKind
    compile_id: str  # Dynamo's number of the frame, and of its compile: "0/0"
    constraints: tuple[str, ...]  # as Python writes them: "ShapeConstraint(alignment=8, dimensions=None)"
    text: Blob  # for people
    nodes: Blob  # JSON: see `tracing.store.graph_file.FxGraph`


class Violation(Record, frozen=True, file="violations"):
    """A node of a graph that violates a constraint, or may violate it for other sizes."""

    constraint: str  # as Python writes it
    node: str  # of the graph: "addmm_1"
    operator: str  # "aten.addmm.default"; "input" or "constant" of a graph
    found: str  # "size 30 of dimension 1, shape (32, 30)"
    required: str  # "a multiple of 8"
    decided: bool = True  # False: it is met in this call, and need not be for other sizes
    python: str = ""  # the innermost line of the user's code: "model.py:12"; empty: not known
    code: str = ""  # that line; without one the path of the module, "0.conv: Conv2d"
    graph: int = -1  # `CheckedGraph.id`; -1: of no recorded graph

    @property
    def text(self) -> str:
        """The violation in one line."""
        undecided = "" if self.decided else "undecided: "
        at = ": ".join(one for one in (self.python, self.code) if one)
        what = f"{self.node} ({self.operator}): {undecided}{self.found}; needed: {self.required}"
        return f"{what} ({at})" if at else what


class GraphCoverage(Record, frozen=True, file="graphcoverage"):
    """How much of a checked graph its constraints allow, counted in operators."""

    graph: int  # `CheckedGraph.id`
    supported: int
    unsupported: int
    undecided: int
    partitions: int  # connected parts of supported operators, each of maximal size
    operators: Mapping[str, int] = {}  # unsupported ones, and how often each occurs


class GraphTime(Record, frozen=True, file="graphtimes"):
    """How long the operators of a checked graph took in eager, in one call."""

    graph: int  # `CheckedGraph.id`
    supported_s: float
    total_s: float
