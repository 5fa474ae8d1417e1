"""Judges the launches of one call of a compiled graph, step by step of its code.

The expected outputs of a step are computed from the contents that its launch read, so a step is judged by its
own inputs, right or wrong. A buffer without a value of the graph, such as a partial result, is skipped: the
next values are computed from the inputs of that buffer, and judge all launches in between together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracing.analyze.judge.findings import GENERATED, JudgedLaunch, NotLaunched, Overwritten
from tracing.analyze.judge.launched_steps import LaunchedStep
from tracing.judge.contents import Content
from tracing.judge.steps.exchanged_buffers import ExchangedBuffers
from tracing.judge.steps.graph_memory import BufferContent
from tracing.judge.steps.judged_steps import JudgedSteps
from tracing.judge.steps.overwritten_inputs import OverwrittenInputs
from tracing.judge.steps.step_inputs import StepInputs, step_inputs
from tracing.judge.steps.step_reads import StepReads
from tracing.judge.steps.step_verdict import StepJudge, StepVerdict
from tracing.judge.steps.step_writes import step_writes
from tracing.judge.steps.unkept_values import UnkeptValues
from tracing.model import KernelLaunch


class StepReferee:
    """Judges one call of a graph."""

    def __init__(
        self, judged: JudgedSteps, steps: Sequence[LaunchedStep], inputs: OverwrittenInputs | None
    ) -> None:
        """Judge one call.

        judged -- receives the verdicts
        steps  -- of the call, in the order of the code
        inputs -- None: the graph may use the memory of its inputs
        """
        self._judged, self._memory, self._steps, self._inputs = judged, judged.memory, steps, inputs
        self._exchanged = ExchangedBuffers(judged.memory, steps)
        self._unkept = UnkeptValues(judged, self._exchanged)

    def judge(self, call: int, missing: Mapping[int, NotLaunched]) -> None:
        """Judge the launches of the call, and those of its results that no launch wrote or read.

        call    -- its index
        missing -- kernels that it did not launch, by position of their step
        """
        for i, made in enumerate(self._steps):
            absent = missing.get(i)
            if absent is not None:
                self._judged.findings.append(absent)
            self._step(made, f"{absent.name} was not launched" if absent is not None else "")
        self._unkept.returned(call)

    def _step(self, made: LaunchedStep, unknown: str) -> None:
        read = StepReads(self._memory).of(made)
        astray: set[int | None] = set()  # storages that are passed as another buffer
        for name, content in read.items():
            if exchanged := self._meet(name, content, made):
                astray |= self._exchanged.passed(content, made)
                unknown = exchanged
        inputs = step_inputs(self._memory, made.step, read, unknown)
        targets = self._targets(made, inputs)
        if made.launches:
            self._launched(made, targets, inputs)
        for held in targets.values():
            if held.storage in astray:
                held.content = None
        self._find_overwritten_inputs(made)
        for name, held in targets.items():
            if made.launches and (held.content is None or held.value is None):
                held.launches = (*inputs.launches, *(one.index for one in made.launches))
            self._memory.held[name] = held
        self._judged.writers.add(made)

    # ---- what a step reads

    def _meet(self, name: str, content: Content, made: LaunchedStep) -> str:
        # compares recorded memory with the expected content: unchanged since its writer, and right?
        # what the launch read in its stead: "launch 3 k was passed buf1 for buf0"; "": nothing that is known
        held = self._memory.held.get(name)
        if held is None:
            return ""
        if held.content is not None:
            if self._memory.contents.same(held.content, content) is False:
                self._overwritten(name, held, made, content)
            return ""
        held.content = self._memory.shaped(held, content)
        if held.content is None or held.step is None or held.value is None:
            return ""
        return self._unkept.read(name, held, made)

    def _overwritten(self, name: str, held: BufferContent, made: LaunchedStep, read: Content) -> None:
        launch = made.launches[0]
        buffer = self._memory.schedule.location(name)
        by, operator = self._judged.writers.between(held, made, name)
        node = held.value.node if held.value else ""
        self._judged.findings.append(
            Overwritten(
                self._judged.graph, f"launch {launch.index} {launch.kernel_name}", buffer, node,
                by.index if by else None, by.kernel_name if by else operator, self._cause(name, held, by),
                lines=self._memory.program.lines([node]),
                instead="" if by or operator else self._memory.holder(read),
            )
        )  # fmt: skip

    def _cause(self, name: str, held: BufferContent, by: KernelLaunch | None) -> str:
        own = self._judged.writers.undeclared(name, held) if by is None else ()
        return "".join(f"{one}, which reads it, or " for one in own) + GENERATED

    def _find_overwritten_inputs(self, made: LaunchedStep) -> None:
        for launch, name in self._inputs.of(made) if self._inputs is not None else ():
            by, kernel = launch.index, launch.kernel_name
            self._judged.findings.append(
                Overwritten(self._judged.graph, "the program", name, name, by, kernel, GENERATED)
            )

    # ---- what a step leaves

    def _targets(self, made: LaunchedStep, inputs: StepInputs) -> dict[str, BufferContent]:
        seen = made.step.kind != "kernel" or bool(made.launches)
        return {name: inputs.makes(self._judged.values.get(name), seen=seen) for name in made.step.buffers}

    def _launched(self, made: LaunchedStep, targets: Mapping[str, BufferContent], inputs: StepInputs) -> None:
        written = step_writes(self._memory, made, targets)
        earlier = [one for one in self._judged.writers.launches if one.index in inputs.launches]
        verdict = StepJudge(self._memory).verdict(targets, written, [*earlier, *made.launches])
        if verdict.verdict == "off" and inputs.unseen:
            verdict = StepVerdict("no reference", inputs.unseen)  # it may be right for what it read
        if verdict.verdict == "right" and inputs.wrong:
            verdict.verdict, verdict.why = "inputs wrong", inputs.wrong
        self._judged.launches += [self._verdict(one, made, verdict, inputs) for one in made.launches]
        if verdict.verdict == "right" and not verdict.unjudged:
            self._judged.acquit(inputs.launches, (made.launches[0].index,))
        if verdict.verdict == "off":
            first, off = made.launches[0], {one.buffer for one in verdict.wrong}
            for name, held in targets.items():
                judged = held.content is not None and held.value is not None
                if not judged or {name, self._memory.schedule.location(name)} & off:
                    held.wrong = f"launch {first.index} {first.kernel_name} is off"

    def _verdict(
        self, launch: KernelLaunch, made: LaunchedStep, verdict: StepVerdict, inputs: StepInputs
    ) -> JudgedLaunch:
        nodes = tuple(verdict.nodes or made.step.nodes)
        others = (*inputs.launches, *(one.index for one in made.launches if one is not launch))
        return JudgedLaunch(
            launch.index, launch.kernel_name, self._judged.graph, verdict.verdict, nodes,
            self._memory.program.lines(nodes), tuple(verdict.wrong), verdict.why, others,
            tuple(verdict.rounded), inputs.operators, tuple(verdict.unjudged),
        )  # fmt: skip
