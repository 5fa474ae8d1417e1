"""Judges values that were not kept when they were made: when a launch reads them, or the call returns them.

They are results of operators of libraries, and of launches whose results were not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tracing.analyze.judge.findings import GENERATED, LibraryOff, Overwritten, WrongElements
from tracing.analyze.judge.launched_steps import LaunchedStep
from tracing.judge.contents import Content
from tracing.judge.fx.fx_values import FxPlan, FxValue
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.fx.operators import is_seed
from tracing.judge.steps.called_operator import CalledOperator
from tracing.judge.steps.exchanged_buffers import ExchangedBuffers
from tracing.judge.steps.graph_memory import BufferContent, FxSources
from tracing.judge.steps.judged_steps import JudgedSteps
from tracing.judge.steps.step_verdict import StepJudge
from tracing.model import KernelLaunch


class _OffValue(NamedTuple):
    """A value that is off, in a buffer."""

    name: str  # of the schedule
    held: BufferContent
    value: FxValue
    content: Content
    plan: FxPlan
    sources: FxSources
    wrong: WrongElements


class UnkeptValues:
    """Judges such values of one call."""

    def __init__(self, judged: JudgedSteps, exchanged: ExchangedBuffers) -> None:
        self._judged, self._memory, self._exchanged = judged, judged.memory, exchanged

    def read(self, name: str, held: BufferContent, reader: LaunchedStep) -> str:
        """Judge a value that a step was the first to read.

        Returns what the step read in its stead: "launch 3 k was passed buf1 for buf0"; "": nothing known.
        """
        off = self._off(name, held)
        if off is None:
            return ""
        if instead := self._exchanged.instead(name, held, reader):
            return self._passed_another(off, reader.launches[0], instead)
        self._blame(off)
        return ""

    def returned(self, call: int) -> None:
        """Judge those results of a call that an operator of a library made, and that no launch read."""
        for position, name, held, content in self._unread_results(call):
            other = self._memory.holder(content)
            held.content = content
            if (off := self._off(name, held)) is not None:
                self._blame(off, f"output {position}" if other else "", other)

    def _unread_results(self, call: int) -> Iterator[tuple[int, str, BufferContent, Content]]:
        schedule, program = self._memory.schedule, self._memory.program
        for position, (name, node) in enumerate(zip(schedule.outputs, program.outputs, strict=False)):
            held, content = (
                self._memory.held.get(name),
                self._memory.contents.of_graph(call, position, "output"),
            )
            if held is None or held.content is not None or held.step is None or content is None:
                continue
            if isinstance(node, Mapping) and program.value(node["node"], len(program.nodes)) == held.value:
                yield position, name, held, content

    def _off(self, name: str, held: BufferContent) -> _OffValue | None:
        # None: it is right, or undecided
        value, content, program = held.value, held.content, self._memory.program
        assert held.step is not None and value is not None and content is not None
        if is_seed(program.nodes[value.node]) or value.node in program.undetermined:
            return None  # no number would be wrong
        try:
            plan, sources = self._memory.plan(value, held.sources)
            if self._judged.draws_unknown(plan):
                raise NoReference("random numbers that it draws")
            wrong, _ = StepJudge(self._memory).wrong(plan, sources, name, name, content)
        except NoReference as reason:
            of, what = f"node {value.node}", "its value"
            if value.writes:
                of, what = f"the memory of {of}", "what it holds"
            self._judged.unjudged.append(f"{of}: no reference, because {what} depends on {reason}")
            return None
        if not wrong:
            self._judged.acquit(held.launches)
            return None
        if held.unknown or held.unseen:  # it may be right for what it read
            return None
        return _OffValue(name, held, value, content, plan, sources, wrong[0])

    def _passed_another(self, off: _OffValue, reader: KernelLaunch, instead: str) -> str:
        location, launch = self._memory.schedule.location, f"launch {reader.index} {reader.kernel_name}"
        unknown = f"{launch} was passed {location(instead)} for {location(off.name)}"
        off.held.content, off.held.unknown = None, unknown
        self._judged.findings.append(self._overwritten(off, launch, location(instead)))
        return unknown

    def _blame(self, off: _OffValue, result: str = "", other: str = "") -> None:
        # result, other -- a result of the call that has the content, and the buffer that has it, too
        held = off.held
        held.wrong = f"{self._memory.program.operator(off.value.node)} is off"
        if held.launches:
            held.wrong = self._judged.accuse(held.launches, off.wrong, off.plan.nodes) or held.wrong
        elif result:
            self._judged.findings.append(self._overwritten(off, result, other))
        else:
            self._judged.findings.append(self._library(off))

    def _overwritten(self, off: _OffValue, reader: str, instead: str) -> Overwritten:
        node = off.value.node
        return Overwritten(
            self._judged.graph, reader, self._memory.schedule.location(off.name), node, None, "", GENERATED,
            off.wrong, self._memory.program.lines([node]), instead=instead,
        )  # fmt: skip

    def _library(self, off: _OffValue) -> Overwritten | LibraryOff:
        called = CalledOperator(self._memory, off.plan, off.sources, off.content)
        readers, right = self._judged.writers.undeclared(off.name, off.held), called.repeats_right()
        if not readers and right and (misread := called.misread()) is not None:
            return self._misread(off, *misread)
        program, node = self._memory.program, off.value.node
        before = self._unread(off)
        others = tuple(f"{program.operator(one)} (node {one})" for one in before)
        lines = program.lines([node, *before])
        return LibraryOff(
            self._judged.graph, program.operator(node), off.wrong, lines, readers, right, others
        )

    def _misread(self, off: _OffValue, name: str, instead: str) -> Overwritten:
        # the operator read a buffer after another launch overwrote it, or another buffer
        program, buffer = self._memory.program, self._memory.schedule.location(name)
        by = self._judged.writers.before(self._memory.held[name], off.held.step)
        launch, kernel = (by.index, by.kernel_name) if by is not None else (None, "")
        node = off.value.node
        return Overwritten(
            self._judged.graph, program.operator(node), buffer, buffer, launch, kernel, GENERATED, off.wrong,
            program.lines([node]), instead="" if by is not None else instead,
        )  # fmt: skip

    def _unread(self, off: _OffValue) -> list[str]:
        # the values that it is computed from that operators of libraries made, and no launch read
        unread = (one for one in self._memory.held.values() if one.content is None and one.step is not None)
        nodes = {one.value.node for one in unread if one.value is not None}
        return [one for one in off.plan.nodes if one in nodes and one != off.value.node]
