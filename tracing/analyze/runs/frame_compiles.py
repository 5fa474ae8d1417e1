"""Summarise what Dynamo compiled: graphs, graph breaks, recompilations, and frames left in eager."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tracing.model import CompiledFrame, FrameCompile, GraphBreak
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class BreakSite:
    """Graph breaks, or failed compiles, of one reason at one line of the user's code."""

    graph_break: GraphBreak
    raised: bool  # the compiles failed there
    compile_ids: Sequence[str]  # of the compiles that it broke


@dataclass(frozen=True, slots=True)
class GuardReport:
    """All compiles of a program, in the order in which they ended."""

    compiles: Sequence[CompiledFrame]

    @property
    def graphs(self) -> Sequence[CompiledFrame]:
        """The compiles that have a graph."""
        return [one for one in self.compiles if one.graph]

    @property
    def breaks(self) -> Sequence[BreakSite]:
        """The graph breaks, each line and reason once."""
        sites: dict[tuple[str | bool, ...], tuple[GraphBreak, bool, list[str]]] = {}
        for one in self.compiles:
            for each in one.facts.breaks:
                title = each.reason.partition("\n")[0]  # the rest names objects of one compile
                raised = one.facts.raised
                known = sites.setdefault((each.python, each.line, title, raised), (each, raised, []))
                known[-1].append(one.facts.compile_id)
        return [BreakSite(*known) for known in sites.values()]

    @property
    def recompilations(self) -> Sequence[CompiledFrame]:
        """The compiles of frames that had compiled code whose guards failed; without those over a limit."""
        return [one for one in self.compiles if one.facts.failed and not one.facts.limit]

    @property
    def limits(self) -> Sequence[CompiledFrame]:
        """The compiles that a limit of recompilations refused."""
        return [one for one in self.compiles if one.facts.limit]

    @property
    def status(self) -> int:
        """The exit status: 2 without a compile, 1 with a graph break, a recompilation or a limit, else 0."""
        if not self.compiles:
            return 2
        return 1 if self.breaks or self.recompilations or self.limits else 0


def guard_report(run: Run) -> GuardReport:
    """The compiles of a run, process by process."""
    return GuardReport(tuple(_frames(run)))


def _frames(run: Run) -> Iterator[CompiledFrame]:
    for one in run.records(FrameCompile):
        graph = run.text(one.graph) if one.graph else ""
        yield CompiledFrame(one, graph, run.text(one.bytecode) if one.bytecode else "")
