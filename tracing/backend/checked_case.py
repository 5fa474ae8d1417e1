"""Check the graphs of a case, and measure the time of their operators."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from tracing import store
from tracing.backend.check_record import checks_recorded
from tracing.backend.constraints.constraint import Constraint, NodeConstraint
from tracing.backend.graph_check import GraphCheck
from tracing.backend.node_values import nodes_of
from tracing.backend.timed_graph import TimedGraph
from tracing.errors import message
from tracing.model import UNMATCHED, GraphKind, GraphTime, NotCovered, Outcome
from tracing.program.case import describe
from tracing.program.experiment import Experiment
from tracing.upstream.inductor.backend_compile import aot_compiled

_NAME = "tracing check"
_MATCHED = "name one that a graph has"


def check_case(
    experiment: Experiment,
    writer: store.RunWriter,
    constraints: Sequence[Constraint],
    asked: Sequence[Constraint],
) -> Outcome:
    """Run a case once, with each of its ATen graphs checked, recorded, and executed operator by operator.

    The backward is executed if the case asks for gradients. If it does not, a backward graph is checked too,
    but has no times. A case that raises leaves a readable run with status "failed".

    asked -- those of the constraints that the user chose for this case; the run notes what they do not match
    """
    graphs: list[torch.fx.Graph] = []
    timed: list[tuple[int, GraphCheck, TimedGraph]] = []
    with checks_recorded(writer) as record, experiment.device.active():

        def compiler(aten: torch.fx.GraphModule, kind: GraphKind) -> Callable[..., Any]:
            graphs.append(aten.graph)
            number, check = record.checked(aten, kind, _NAME, constraints)
            timed_graph = TimedGraph(aten)
            timed.append((number, check, timed_graph))
            return lambda inputs: timed_graph(inputs)

        def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
            return aot_compiled(graph, inputs, compiler)

        try:
            experiment.results(experiment.workload().with_backend(backend), torch.compile)
        except Exception as error:
            detail = describe(error, experiment.case.path)
            outcome = Outcome("failed", detail, traceback.format_exc(), message(error))
        else:
            outcome = Outcome("compiled", f"graphs were checked; {record.violations} violations")
    writer.extend([_time(*one) for one in timed if one[-1].calls])
    if graphs and outcome.status != "failed":
        writer.extend([NotCovered(f"{UNMATCHED}{what}", _MATCHED) for what in _unmatched(asked, graphs)])
    if not timed:
        writer.append(NotCovered("this case: torch.compile made no graph of it", ""))
    writer.append(outcome)
    return outcome


def _unmatched(constraints: Sequence[Constraint], graphs: Sequence[torch.fx.Graph]) -> Iterator[str]:
    nodes = [node for graph in graphs for _, node in nodes_of(graph)]
    for one in constraints:
        if isinstance(one, NodeConstraint):
            yield from one.unmatched(nodes)


def _time(number: int, check: GraphCheck, graph: TimedGraph) -> GraphTime:
    refused = check.unsupported | check.undecided
    supported = sum(seconds for name, seconds in graph.seconds.items() if name not in refused)
    return GraphTime(number, supported, sum(graph.seconds.values()))
