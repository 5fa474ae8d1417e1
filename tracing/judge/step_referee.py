"""Judges the launches of one call of a compiled graph, step by step of its code.

What a step should leave is computed from what its launch found in its arguments, so a step is judged by what
it was given, right or wrong. A buffer that holds no single value of the graph, as a partial result does, is
passed over: what is made from it is computed from what the buffer was made from, and judges all launches in
between together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from tracing.analyze.judge.judgement import (
    JudgedLaunch,
    LaunchVerdict,
    LibraryOff,
    Overwritten,
    WrongElements,
)
from tracing.analyze.judge.made_steps import MadeStep
from tracing.judge.contents import Content, Contents
from tracing.judge.float64 import OtherDtype, judged, wrong_elements
from tracing.judge.fx_program import FxPlan, FxProgram, FxValue
from tracing.judge.operators import NoReference
from tracing.judge.values import values_of
from tracing.model import KernelArg, KernelLaunch
from tracing.store.graph_file import PythonLine, Schedule, ScheduleStep

Sources = dict[FxValue, Content | int | float]
_PARTIAL = "it leaves partial results, for which no node of the graph stands"


@dataclass(slots=True)
class Held:
    """What a name of the schedule stands for in one call."""

    value: FxValue | None = None  # of the graph; None: no single one
    content: Content | None = None  # None: nobody kept it
    sources: Sources = field(default_factory=dict)  # from which it was made
    launches: tuple[int, ...] = ()  # by which, of those not judged yet
    step: ScheduleStep | None = None  # that made it; None: an input
    by: KernelLaunch | None = None
    wrong: str = ""  # the launch or operator that is off and that it depends on

    @property
    def judgeable(self) -> bool:
        """True if it was made by a step, and is judged as soon as its content is known."""
        return self.step is not None and self.value is not None and self.content is None


@dataclass(slots=True)
class StepReferee:
    """Judges one call of a graph."""

    graph: int
    program: FxProgram  # the graph as it was lowered
    schedule: Schedule
    contents: Contents
    held: dict[str, Held]
    launches: list[JudgedLaunch] = field(default_factory=list)
    findings: list[Overwritten | LibraryOff] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)  # operators of libraries
    _made: list[KernelLaunch] = field(default_factory=list)
    values: dict[str, FxValue] = field(default_factory=dict)  # that names of the schedule hold

    def judge(self, steps: Sequence[MadeStep]) -> None:
        """Judge the launches of one call, in the order of the code."""
        self.values = values_of(self.schedule, self.program)
        for made in steps:
            self._step(made)

    # ---- one step

    def _step(self, made: MadeStep) -> None:
        step = made.step
        before = self._found(made)
        for name, content in before.items():
            self._meet(name, content, made)
        sources, others, wrong = self._sources(step, before)
        targets: dict[str, Held] = {}
        unseen = step.kind == "kernel" and not made.launches  # a launch that was not recorded
        for name in step.buffers:
            value, origin = self.values.get(name), None if unseen else step
            targets[name] = Held(value, None, {} if unseen else sources, others, origin, wrong=wrong)
        if made.launches:
            self._launched(made, targets, others, wrong)
        for name, held in targets.items():
            if made.launches and (held.content is None or held.value is None):
                held.launches = (*others, *(one.index for one in made.launches))
            self.held[name] = held
        self._made += made.launches

    def _found(self, made: MadeStep) -> dict[str, Content]:
        # what the launches of a step found, by name of what it should have been
        before: dict[str, Content] = {}
        unnamed: list[Content] = []
        names = {self.schedule.location(name): name for name in made.step.reads}
        for call in made.calls:
            for name, position, argument in call.arguments():
                content = call.launch and self.contents.argument(call.launch, position, argument, "before")
                if not content or not argument.reads:
                    continue
                if name in names:
                    before.setdefault(names[name], content)
                elif name in made.step.buffers:  # a buffer that it reuses, under its new name
                    unnamed.append(content)
        return before | self._reused(unnamed, [name for name in made.step.reads if name not in before])

    def _reused(self, contents: Sequence[Content], names: Sequence[str]) -> dict[str, Content]:
        # of the names that no argument has, which was in a buffer that the launch overwrites
        left = [name for name in names if name in self.held]
        matched: dict[str, Content] = {}
        unclear = []
        for content in contents:
            equal = [
                n for n in left if (known := self.held[n].content) and self.contents.same(known, content)
            ]
            if equal:
                matched[equal[0]] = content
                left.remove(equal[0])
            else:
                unclear.append(content)
        fitting = [name for name in left if self._fits(name, unclear)]
        if len(unclear) == 1 and len(fitting) == 1:
            matched[fitting[0]] = unclear[0]
        return matched

    def _fits(self, name: str, contents: Sequence[Content]) -> bool:
        held = self.held[name]
        if len(contents) != 1 or (held.step is None and held.content is None):
            return False
        if held.content is not None:
            return self.contents.same(held.content, contents[0]) is False
        value = held.value and self.program.nodes[held.value.node].value
        meta = contents[0].meta
        if not isinstance(value, dict) or meta is None or value.get("dtype") != meta.dtype:
            return False
        shape = value.get("shape", [])
        sizes = [one for one in shape if isinstance(one, int)]
        return len(sizes) < len(shape) or _product(sizes) == _product(meta.shape)

    # ---- what a step reads

    def _meet(self, name: str, content: Content, made: MadeStep) -> None:
        # a content is seen in memory: is it what was left there, and is that right?
        held = self.held.get(name)
        if held is None:
            return
        if held.content is not None:
            if self.contents.same(held.content, content) is False:
                self._overwritten(name, held, made)
            return
        held.content = self._shaped(held, content)
        if held.content is not None and held.step is not None and held.value is not None:
            self._late(name, held)

    def _shaped(self, held: Held, content: Content) -> Content | None:
        # as the graph's value, if a buffer is read with another shape
        value = held.value and self.program.nodes[held.value.node].value
        shape = value.get("shape") if isinstance(value, dict) else None
        meta = content.meta
        if shape is None or meta is None or [*meta.shape] == shape:
            return content
        if any(not isinstance(one, int) for one in shape):
            return content
        plain = self.contents.tensor(content)
        if _product(shape) != plain.numel() or not plain.is_contiguous():
            return None
        return self.contents.reshaped(content, tuple(shape))

    def _overwritten(self, name: str, held: Held, made: MadeStep) -> None:
        launch = made.launches[0]
        buffer = self.schedule.location(name)
        by = self._overwriter(held, launch, name)
        node = held.value.node if held.value else ""
        self.findings.append(
            Overwritten(
                self.graph, f"launch {launch.index} {launch.kernel_name}", buffer, node,
                by.index if by else None, by.kernel_name if by else "", "Inductor's generated code",
                lines=self.lines([node]),
            )
        )  # fmt: skip

    def _overwriter(self, held: Held, reader: KernelLaunch, name: str) -> KernelLaunch | None:
        # the last launch in between that wrote to the storage from which the reader reads
        storages = {arg.storage for arg in reader.args if arg.reads}
        start = held.by.index if held.by is not None else -1
        between = [one for one in self._made if start < one.index < reader.index]
        if held.by is not None:
            storages &= {arg.storage for arg in held.by.args if arg.writes}
        writers = [one for one in between if {arg.storage for arg in one.args if arg.writes} & storages]
        return writers[-1] if writers else None

    def _sources(
        self, step: ScheduleStep, before: dict[str, Content]
    ) -> tuple[Sources, tuple[int, ...], str]:
        sources: Sources = self.numbers()
        others: dict[int, None] = {}
        wrong = ""
        for name in step.reads:
            held = self.held.get(name)
            if held is None:
                continue
            wrong = wrong or held.wrong
            content = before.get(name) or held.content
            if content is not None and held.value is not None:
                shaped = self._shaped(held, content)
                if shaped is not None:
                    sources[held.value] = shaped
                    continue
            sources |= {value: one for value, one in held.sources.items() if value not in sources}
            others |= dict.fromkeys(held.launches)
        return sources, tuple(others), wrong

    def numbers(self) -> Sources:
        """Inputs of the graph that are numbers, as sizes."""
        return {
            value: content
            for one in self.held.values()
            for value, content in one.sources.items()
            if one.step is None and not isinstance(content, Content)
        }

    # ---- what a step leaves

    def _launched(
        self, made: MadeStep, targets: dict[str, Held], others: tuple[int, ...], wrong: str
    ) -> None:
        written = self._written(made, targets)
        verdict = self._verdict(made.step, targets, written)
        if verdict.verdict == "right" and wrong:
            verdict.verdict, verdict.why = "inputs wrong", f"{wrong} is off"
        for launch in made.launches:
            self.launches.append(
                JudgedLaunch(
                    launch.index, launch.kernel_name, self.graph, verdict.verdict,
                    tuple(verdict.nodes or made.step.nodes),
                    self.lines(verdict.nodes or made.step.nodes),
                    tuple(verdict.wrong), verdict.why,
                    (*others, *(one.index for one in made.launches if one is not launch)),
                )
            )  # fmt: skip
        if verdict.verdict == "right":
            self._acquit(others, made.launches[0])
        if verdict.verdict == "off":
            first = made.launches[0]
            for held in targets.values():
                held.wrong = f"launch {first.index} {first.kernel_name}"

    def _acquit(self, others: tuple[int, ...], by: KernelLaunch) -> None:
        # of launches whose partial results it read, and which were computed anew from what these read
        for i, one in enumerate(self.launches):
            if one.launch in others and one.why == _PARTIAL:
                self.launches[i] = replace(one, verdict="right", why="", others=(by.index,))

    def _written(self, made: MadeStep, targets: dict[str, Held]) -> dict[str, tuple[str, Content]]:
        # by name of the schedule, the argument that has it, and what the launch left in it
        locations = {self.schedule.location(name): name for name in targets}
        written: dict[str, tuple[str, Content]] = {}
        for call in made.calls:
            for name, position, argument in call.arguments():
                own = name if name in targets else locations.get(name)
                if own is None or not argument.writes or call.launch is None:
                    continue
                targets[own].by = call.launch
                content = self.contents.argument(call.launch, position, argument, "after")
                if content is not None:
                    shaped = self._shaped(targets[own], content)
                    targets[own].content = shaped if shaped is not None else content
                    if shaped is None:
                        targets[own].value = None
                    written[own] = _argument_name(argument), targets[own].content or content
        return written

    def _verdict(
        self, step: ScheduleStep, targets: dict[str, Held], written: dict[str, tuple[str, Content]]
    ) -> _Verdict:
        if not written:
            return _Verdict("no reference", "what it wrote was not kept")
        named = {name: held.value for name, held in targets.items() if name in written and held.value}
        if not named:
            return self._copies(step, targets, written)
        verdict = _Verdict("no reference")
        drawn: Sources = {}  # other results of this launch that depend on its random numbers
        by_order = sorted(named.items(), key=lambda one: self.program.order[one[1].node])
        right = False
        for name, value in by_order:
            sources = targets[name].sources
            try:
                plan, sources = self._plan(value, sources | drawn)
                if plan.draws:
                    drawn[value] = written[name][1]
                    raise NoReference("random numbers that it draws")
                wrong = self._wrong(plan, sources, name, *written[name])
                verdict.nodes += [one for one in plan.nodes if one not in verdict.nodes]
            except NoReference as reason:
                verdict.why = verdict.why or f"it depends on {reason}"
                continue
            right = True
            verdict.wrong += wrong
        if verdict.wrong:
            verdict.verdict = "off"
        elif right:
            verdict.verdict = "right"
        return verdict

    def _copies(
        self, step: ScheduleStep, targets: dict[str, Held], written: dict[str, tuple[str, Content]]
    ) -> _Verdict:
        # a buffer without a node may still hold one's value, in another layout: if it does, it is right
        nodes: list[str] = []
        for name, (argument, content) in written.items():
            plan = next(self._copied(name, targets[name].sources, argument, content), None)
            if plan is None:
                return _Verdict("no reference", _PARTIAL)
            nodes += plan.nodes
            targets[name].value = plan.targets[0]
        return _Verdict("right", nodes=nodes)

    def _copied(self, name: str, sources: Sources, argument: str, content: Content) -> Iterator[FxPlan]:
        buffer = self.schedule.buffers.get(name)
        shape = content.meta.shape if content.meta is not None else None
        for origin in reversed(sorted(buffer.origins if buffer else (), key=self.program.order.__getitem__)):
            value = self.program.nodes[origin].value
            if not isinstance(value, dict) or value.get("shape") != [*(shape or ())]:
                continue
            try:
                plan, given = self._plan(self.program.value(origin), sources)
                if not plan.draws and not self._wrong(plan, given, name, argument, content):
                    yield plan
            except NoReference:
                continue

    def _plan(self, value: FxValue, sources: Sources) -> tuple[FxPlan, Sources]:
        try:
            return self.program.plan([value], sources), sources
        except NoReference:  # of an input it may need only the shape, and then the launch does not read it
            inputs = [self.held[name] for name in self.schedule.inputs if name in self.held]
            known = {one.value: one.content for one in inputs if one.value and one.content}
            more: Sources = {**known, **sources}
            return self.program.plan([value], more), more

    def _wrong(
        self, plan: FxPlan, sources: Sources, buffer: str, name: str, content: Content
    ) -> list[WrongElements]:
        tensor = self.contents.tensor(content)
        try:
            verdicts = judged(self.program, plan, self.loaded(sources), {plan.targets[0]: tensor})
        except OtherDtype as other:
            return [other.elements(name, buffer, tensor)]
        verdict = verdicts[plan.targets[0]]
        if verdict.verdict == "no reference":
            raise NoReference(", ".join(verdict.missing))
        if verdict.verdict != "compiled is off":
            return []
        if plan.uninitialised:
            raise NoReference("memory that nobody wrote")
        return [wrong_elements(name, buffer, plan.targets[0], verdict, tensor.numel())]

    def _late(self, name: str, held: Held) -> None:
        # the result of an operator of a library, or of launches whose results were not kept
        assert held.step is not None and held.value is not None and held.content is not None
        try:
            plan, sources = self._plan(held.value, held.sources)
            if plan.draws:
                raise NoReference("random numbers that it draws")
            wrong = self._wrong(plan, sources, name, name, held.content)
        except NoReference as reason:
            self.unjudged.append(f"{held.value.node}: it depends on {reason}")
            return
        if not wrong:
            return
        operator = self.program.nodes[held.value.node].target
        held.wrong = operator
        if held.launches:
            self._accuse(held, wrong[0], plan)
        else:
            self.findings.append(LibraryOff(self.graph, operator, wrong[0], self.lines([held.value.node])))

    def _accuse(self, held: Held, wrong: WrongElements, plan: FxPlan) -> None:
        for i, one in enumerate(self.launches):
            if one.launch in held.launches and one.verdict != "off":
                others = tuple(index for index in held.launches if index != one.launch)
                self.launches[i] = JudgedLaunch(
                    one.launch, one.kernel, one.graph, "off", plan.nodes, self.lines(plan.nodes),
                    (wrong,), "", others,
                )  # fmt: skip
                held.wrong = f"launch {one.launch} {one.kernel}"

    def loaded(self, sources: Sources) -> dict[FxValue, object]:
        """What values of the graph were, as tensors and numbers."""
        tensor = self.contents.tensor
        return {v: tensor(one) if isinstance(one, Content) else one for v, one in sources.items()}

    def lines(self, nodes: Sequence[str]) -> tuple[PythonLine, ...]:
        """The Python lines that nodes of the graph come from."""
        return tuple(dict.fromkeys(self._lines(nodes)))

    def _lines(self, nodes: Sequence[str]) -> Iterator[PythonLine]:
        for name in nodes:
            node = self.program.nodes.get(name)
            line = self.program.graph.line_of(node) if node is not None else None
            if line is not None:
                yield line


@dataclass(slots=True)
class _Verdict:
    verdict: LaunchVerdict
    why: str = ""
    nodes: list[str] = field(default_factory=list)
    wrong: list[WrongElements] = field(default_factory=list)


def _argument_name(argument: KernelArg) -> str:
    return argument.name


def _product(sizes: Sequence[int]) -> int:
    return int(torch.Size(sizes).numel())
