"""Judges the results and gradients of calls of the graphs that Dynamo traced, by these graphs.

Decompositions, pre-grad and joint passes change a graph before Inductor lowers it. If one of them is wrong,
each launch is right by the graph that Inductor received; only the graph that Dynamo traced shows the fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tracing.analyze.judge.findings import SharedResult, TracedOff
from tracing.analyze.judge.judgement import BY_DYNAMO
from tracing.judge.contents import Content, Contents
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.traced.drawn_numbers import GraphDraws
from tracing.judge.traced.judged_backward import JudgedBackward
from tracing.judge.traced.judged_call import JudgedCall
from tracing.judge.traced.judged_results import JudgedResults, refused
from tracing.judge.traced.traced_executions import TracedExecution
from tracing.judge.traced.traced_program import TracedProgram
from tracing.model import GraphCall, TracedBackward, TracedCall, TracedGraph
from tracing.store import Run
from tracing.store.graph_file import read_graph


class TracedFindings(NamedTuple):
    """What is off in one call or backward, and why results of it could not be judged."""

    off: tuple[TracedOff | SharedResult, ...]
    not_covered: tuple[str, ...]
    contents: Mapping[str, Content]  # of the results that are off or right, by name


class TracedReferee:
    """Judges calls of the graphs that Dynamo traced in one process of a run, and their backwards."""

    def __init__(self, run: Run, process: str, contents: Contents) -> None:
        self._run, self._contents = run, contents
        self._graphs = {one.id: one for one in run.view(process, TracedGraph, TracedGraph)}
        self._calls = {one.index: one for one in run.view(process, TracedCall, TracedCall)}
        self._programs: dict[int, TracedProgram] = {}

    def judge(
        self,
        one: TracedExecution,
        unjudged: Sequence[str],
        draws: Sequence[GraphDraws] = (),
        received: FxProgram | None = None,
    ) -> TracedFindings:
        """Judge one call, or one backward of a call.

        unjudged -- launches of it that have no reference
        draws    -- of the call, in order
        received -- the graph that has its results, as Inductor received it
        """
        try:
            judged = self._judged(one, unjudged, draws)
            off = tuple(judged.findings())
            if received is not None and isinstance(judged, JudgedCall) and len(one.inner) == 1:
                off = _with_first_difference(off, judged, one.inner[0], received)
            names = [*judged.right, *(one.wrong.name for one in off if isinstance(one, TracedOff))]
            kept = {name: content for name in names if (content := judged.content(name)) is not None}
            return TracedFindings(off, tuple(judged.not_covered), kept)
        except NoReference as reason:
            which = "gradients" if isinstance(one.record, TracedBackward) else "results"
            what = f"{which} of graph {one.graph} {BY_DYNAMO}"
            return TracedFindings((), (f"{what}: no reference, because it depends on {reason}",), {})

    def _judged(
        self, one: TracedExecution, unjudged: Sequence[str], draws: Sequence[GraphDraws]
    ) -> JudgedResults:
        record = one.record
        call = self._calls.get(record.call) if isinstance(record, TracedBackward) else record
        if call is None or call.graph not in self._graphs:
            raise NoReference("a graph that was not recorded")
        program = self._program(call.graph)
        if isinstance(record, TracedBackward):
            return JudgedBackward(
                record, call, one.graph, one.inner, program, self._contents, unjudged, draws
            )
        return JudgedCall(call, one.graph, program, self._contents, unjudged, draws)

    def _program(self, graph: int) -> TracedProgram:
        if graph not in self._programs:
            nodes = read_graph(self._run, self._graphs[graph].nodes)
            virtual = self._run.info.environment.virtual
            with refused():
                self._programs[graph] = TracedProgram(nodes, self._contents.device, virtual=virtual)
        return self._programs[graph]


def _with_first_difference(
    off: tuple[TracedOff | SharedResult, ...], judged: JudgedCall, inner: GraphCall, received: FxProgram
) -> tuple[TracedOff | SharedResult, ...]:
    wrong = next((one for one in off if isinstance(one, TracedOff)), None)
    first = judged.first_difference(wrong.wrong.node, inner, received) if wrong is not None else None
    if wrong is None or first is None:
        return off
    operators = tuple(dict.fromkeys(one.target for one in (first.node, *reversed(first.before))))
    named = replace(wrong, first=first.node.name, operators=operators, lines=judged.lines_of(first.node))
    return tuple(named if one is wrong else one for one in off)
