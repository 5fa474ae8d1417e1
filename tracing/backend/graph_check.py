"""Check one graph against constraints, and determine which of its operators are supported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from msgspec.structs import replace
from torch.fx import Graph, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import create_op_support

from tracing.backend.constraints.constraint import Constraint, GraphConstraint, TensorConstraint
from tracing.backend.node_values import is_getitem, is_operator_call, nodes_of, operator_name
from tracing.model import GraphCoverage, Violation


@dataclass(frozen=True, slots=True)
class GraphCheck:
    """The result of checking one graph."""

    violations: Sequence[Violation]  # in the order of its nodes, then those of the whole graph
    unsupported: frozenset[str]  # names of operators' nodes that are refused, or read a tensor that is
    undecided: frozenset[str]  # likewise, for some sizes only

    def of_graph(self, number: int) -> GraphCheck:
        """The same with violations that name their graph, by `CheckedGraph.id`."""
        violations = [replace(one, graph=number) for one in self.violations]
        return GraphCheck(violations, self.unsupported, self.undecided)


def check_graph(graph: Graph, constraints: Iterable[Constraint]) -> GraphCheck:
    """Check each node, and the graph as a whole, against each constraint.

    graph -- after AOTAutograd: `meta["val"]` of its nodes holds fake tensors

    A node may violate several constraints; each is a separate violation. An operator that reads a tensor
    which a constraint on tensors refuses is unsupported, without a violation of its own; and so is one that
    calls a graph, as cond does, of which a node violates a constraint.
    """
    constraints = list(constraints)
    violations: list[Violation] = []
    refused: dict[bool, set[Node]] = {True: set(), False: set()}  # by whether it is decided
    holder: Node | None = None  # the node of this graph that holds the called graph of `node`
    for name, node in nodes_of(graph):
        holder = node if node.graph is graph else holder
        for constraint in constraints:
            violation = None if isinstance(constraint, GraphConstraint) else constraint.check(node)
            if violation is None:
                continue
            violations.append(replace(violation, node=name))
            if holder is not node and holder is not None:
                refused[violation.decided] |= set(holder.users)
                continue
            readers = _readers(node) if isinstance(constraint, TensorConstraint) else set()
            refused[violation.decided] |= {node, *readers}
    whole = [one.check_graph(graph) for one in constraints if isinstance(one, GraphConstraint)]
    names = {
        decided: frozenset(node.name for node in nodes if is_operator_call(node))
        for decided, nodes in refused.items()
    }
    return GraphCheck([*violations, *filter(None, whole)], names[True], names[False] - names[True])


def _readers(node: Node) -> set[Node]:
    readers = set(node.users)
    for user in node.users:
        if is_getitem(user):
            readers |= set(user.users)
    return readers


def coverage(module: torch.fx.GraphModule, check: GraphCheck, number: int) -> GraphCoverage:
    """How many operators of a graph are supported, and into how many partitions they fall.

    number -- `CheckedGraph.id`

    Source of the partitions: `torch.fx.passes.infra.partitioner`, operators by themselves included.
    """
    refused = check.unsupported | check.undecided
    operators = [node for node in module.graph.nodes if is_operator_call(node)]

    def supported(node: Node) -> bool:
        node = node.all_input_nodes[0] if is_getitem(node) else node
        return is_operator_call(node) and node.name not in refused

    support = create_op_support(lambda _, node: supported(node))
    partitions = CapabilityBasedPartitioner(module, support, allows_single_node_partition=True)
    names = Counter(operator_name(node) for node in operators if node.name in check.unsupported)
    return GraphCoverage(
        number,
        sum(supported(node) for node in operators),
        len(check.unsupported),
        len(check.undecided),
        len(partitions.propose_partitions()),
        dict(names),
    )
