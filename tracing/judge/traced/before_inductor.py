"""Judges what torch.compile does before Inductor's post-grad passes, by the graphs that Dynamo traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tracing.analyze.judge.findings import Finding
from tracing.errors import page
from tracing.judge.contents import Contents
from tracing.judge.graph_call_referee import CallJudgement
from tracing.judge.graph_programs import GraphPrograms
from tracing.judge.traced.drawn_numbers import GraphDraws
from tracing.judge.traced.suspect_nodes import located
from tracing.judge.traced.traced_executions import TracedExecution, traced_executions
from tracing.judge.traced.traced_referee import TracedReferee
from tracing.model import GraphCall, TracedCall

_BEFORE = "what torch.compile does before Inductor's post-grad passes, as decompositions and joint passes do"
_BISECT = (
    f"`tracing bisect` names the step of a program that checks its results ({page('docs/bisect-case.md')})"
)


class BeforeInductor:
    """Judges the calls of one process in which nothing is off by the graphs that Inductor received."""

    def __init__(
        self,
        process: str,
        contents: Contents,
        graphs: GraphPrograms,
        judged: Mapping[int, CallJudgement],
        stopped_by: Callable[[], str],
    ) -> None:
        """judged -- the calls of compiled graphs, by their index; stopped_by -- as of `judge_run`"""
        self._process, self._contents, self._graphs = process, contents, graphs
        self._judged, self._stopped_by = judged, stopped_by
        self._referee = TracedReferee(contents.run, process, contents)
        self._draws: dict[int, list[GraphDraws]] = {}  # of each call
        self._off: set[int] = set()  # calls of which something is off: their backward depends on it
        self._launches = [launch for one in judged.values() for launch in one.launches]
        self._graphs_off = {finding.graph for one in judged.values() for finding in one.findings}
        self.findings: list[Finding] = []
        self.not_covered: list[str] = []
        self.skipped: set[int] = set()  # graphs of calls in which something is off already

    def judge(self, calls: Sequence[GraphCall], progress: Callable[[str], None]) -> None:
        """Judge the calls of the graphs that Dynamo traced, and their backwards.

        calls -- of compiled graphs, in their order
        """
        unchecked = {one.index: one.graph for one in calls}
        for one in traced_executions(self._contents.run, self._process, calls):
            if self._stopped_by():
                break
            for call in one.inner:
                unchecked.pop(call.index, None)
            if self._is_off(one):
                self._off.add(one.call)
            if isinstance(one.record, TracedCall):
                made = (self._judged[call.index].draws for call in one.inner if call.index in self._judged)
                self._draws[one.call] = [draws for draws in made if draws is not None]
            if one.call in self._off:
                self.skipped.update(call.graph for call in one.inner)
            else:
                progress(f"judging: call {one.record.index} of a graph that Dynamo traced")
                self._execution(one)
        if unchecked and self._contents.run.info.kind != "case":
            stopped = f"{self._stopped_by()} ended the judgement before it" if self._stopped_by() else ""
            graphs = self._graphs.named(unchecked.values())
            self.not_covered.append(f"{_BEFORE}, to {graphs}: {stopped or _BISECT}")

    def _execution(self, one: TracedExecution) -> None:
        received = self._graphs.program(one.graph).traced
        judged = self._referee.judge(one, self._unjudged(one), self._draws.get(one.call, ()), received)
        if judged.off:
            self._off.add(one.call)
        findings = [*located(judged, one.inner, received.graph, self._contents)]
        self.findings += findings
        self._graphs_off |= {finding.graph for finding in findings}
        self.not_covered += judged.not_covered

    def _unjudged(self, one: TracedExecution) -> list[str]:
        spans = [range(*call.launches) for call in one.inner]
        return [
            f"launch {launch.launch} {launch.kernel}"
            for launch in self._launches
            if launch.unchecked and any(launch.launch in span for span in spans)
        ]

    def _is_off(self, one: TracedExecution) -> bool:
        # something in it, or something that it left, is off by the graphs that Inductor received
        spans = [range(*call.launches) for call in one.inner]
        off = (launch.launch for launch in self._launches if launch.verdict == "off")
        graphs = {call.graph for call in one.inner}
        return bool(graphs & self._graphs_off) or any(launch in span for launch in off for span in spans)
