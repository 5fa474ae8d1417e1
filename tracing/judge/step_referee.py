"""Judges the launches of one call of a compiled graph, step by step of its code.

The expected outputs of a step are computed from the contents that its launch read, so a step is judged by its
own inputs, right or wrong. A buffer without a value of the graph, such as a partial result, is skipped: the
next values are computed from the inputs of that buffer, and judge all launches in between together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tracing.analyze.judge.findings import JudgedLaunch, LibraryOff, NotLaunched, Overwritten, WrongElements
from tracing.analyze.judge.launched_steps import LaunchedStep
from tracing.judge.buffer_writers import BufferWriters
from tracing.judge.called_operator import CalledOperator
from tracing.judge.contents import Content
from tracing.judge.fx_values import FxPlan, FxValue
from tracing.judge.graph_memory import BufferContent, FxSources, GraphMemory
from tracing.judge.library_storages import library_storages
from tracing.judge.no_reference import NoReference
from tracing.judge.operators import is_seed
from tracing.judge.overwritten_inputs import OverwrittenInputs
from tracing.judge.random_numbers import draws_as_known
from tracing.judge.step_reads import StepReads
from tracing.judge.step_verdict import PARTIAL, StepJudge
from tracing.judge.values import values_of
from tracing.model import KernelLaunch
from tracing.store.graph_file import PythonLine, ScheduleStep

_PART = "_operator.getitem"  # one of several results
GENERATED = "Inductor's generated code"


class _Returned(NamedTuple):
    """A result of a call that is another buffer."""

    result: str  # "output 1"
    buffer: str


@dataclass(slots=True)
class StepReferee:
    """Judges one call of a graph."""

    graph: int
    memory: GraphMemory
    inputs: OverwrittenInputs | None = None  # None: the graph may use the memory of its inputs
    launches: list[JudgedLaunch] = field(default_factory=list)
    findings: list[Overwritten | LibraryOff | NotLaunched] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)  # operators of libraries
    writers: BufferWriters = field(init=False)
    values: dict[str, FxValue] = field(default_factory=dict)  # values that names of the schedule hold
    _steps: Sequence[LaunchedStep] = ()
    _storages: Mapping[str, int] | None = None  # as of `library_storages`; None: not asked for yet

    def __post_init__(self) -> None:
        self.writers = BufferWriters(self.memory)

    def judge(self, steps: Sequence[LaunchedStep], missing: Mapping[int, NotLaunched] | None = None) -> None:
        """Judge the launches of one call, in the order of the code.

        missing -- kernels that the call did not launch, by position of their step
        """
        self.values = values_of(self.memory.schedule, self.memory.program)
        self._steps = steps
        for i, made in enumerate(steps):
            absent = (missing or {}).get(i)
            if absent is not None:
                self.findings.append(absent)
            self._step(made, f"{absent.kernel} was not launched" if absent is not None else "")

    def returned(self, call: int) -> None:
        """Judge those results of the call that an operator of a library made, and that no launch read."""
        schedule, program = self.memory.schedule, self.memory.program
        for position, (name, node) in enumerate(zip(schedule.outputs, program.outputs, strict=False)):
            held, content = (
                self.memory.held.get(name),
                self.memory.contents.of_graph(call, position, "output"),
            )
            if held is None or held.content is not None or held.step is None or content is None:
                continue
            if isinstance(node, Mapping) and program.value(node["node"], len(program.nodes)) == held.value:
                other = self.holder(content)
                held.content = content
                self._late(name, held, _Returned(f"output {position}", other) if other else None)

    def draws_unknown(self, plan: FxPlan) -> bool:
        """True if a plan draws random numbers that are not those which the launches of the call draw."""
        return plan.draws and not (plan.generated and self.draws_known)

    @property
    def draws_known(self) -> bool:
        """True if the random numbers that the launches of the call draw follow from their seeds."""
        return draws_as_known(self.memory.contents.run, self.writers.launches)

    def _step(self, made: LaunchedStep, unknown: str) -> None:
        step = made.step
        before = StepReads(self.memory).of(made)
        astray: set[int | None] = set()  # storages that are passed as another buffer
        for name, content in before.items():
            if exchanged := self._meet(name, content, made):
                astray |= self._passed(content, made)
                unknown = exchanged
        sources, others, wrong = self._sources(step, before)
        unknown = unknown or self._unknown(step, before)
        wrong = wrong or unknown
        targets: dict[str, BufferContent] = {}
        unseen = step.kind == "kernel" and not made.launches  # a launch that was not recorded
        for name in step.buffers:
            value, origin = self.values.get(name), None if unseen else step
            targets[name] = BufferContent(
                value, None, {} if unseen else sources, others, self._operators(step), origin, wrong=wrong,
                unknown=unknown,
            )  # fmt: skip
        if made.launches:
            self._launched(made, targets, others, wrong)
        for held in targets.values():
            if held.storage in astray:
                held.content = None
        for launch, name in self.inputs.of(made) if self.inputs is not None else ():
            self.findings.append(
                Overwritten(
                    self.graph, "the program", name, name, launch.index, launch.kernel_name, GENERATED
                )
            )
        for name, held in targets.items():
            if made.launches and (held.content is None or held.value is None):
                held.launches = (*others, *(one.index for one in made.launches))
            self.memory.held[name] = held
        self.writers.add(made)

    # ---- what a step reads

    def _meet(self, name: str, content: Content, made: LaunchedStep) -> str:
        # compares recorded memory with the expected content: unchanged since its writer, and right?
        # what the launch read in its stead: "launch 3 k was passed buf1 for buf0"; "": nothing that is known
        held = self.memory.held.get(name)
        if held is None:
            return ""
        if held.content is not None:
            if self.memory.contents.same(held.content, content) is False:
                self._overwritten(name, held, made, content)
            return ""
        held.content = self.memory.shaped(held, content)
        if held.content is None or held.step is None or held.value is None:
            return ""
        return self._late(name, held, reader=made)

    def _overwritten(self, name: str, held: BufferContent, made: LaunchedStep, read: Content) -> None:
        launch = made.launches[0]
        buffer = self.memory.schedule.location(name)
        by, operator = self.writers.between(held, made, name)
        node = held.value.node if held.value else ""
        self.findings.append(
            Overwritten(
                self.graph, f"launch {launch.index} {launch.kernel_name}", buffer, node,
                by.index if by else None, by.kernel_name if by else operator, self._cause(name, held, by),
                lines=self.lines([node]), instead="" if by or operator else self.holder(read),
            )
        )  # fmt: skip

    def holder(self, read: Content) -> str:
        """The buffer that has a content; "": none that is known."""
        same = (
            name
            for name, held in self.memory.held.items()
            if held.content is not None and self.memory.contents.same(held.content, read)
        )
        return self.memory.schedule.location(next(same, ""))

    def _cause(self, name: str, held: BufferContent, by: KernelLaunch | None) -> str:
        own = self.writers.undeclared(name, held) if by is None else ()
        return "".join(f"{one}, which reads it, or " for one in own) + GENERATED

    def _sources(
        self, step: ScheduleStep, before: dict[str, Content]
    ) -> tuple[FxSources, tuple[int, ...], str]:
        sources: FxSources = self.memory.numbers()
        others: dict[int, None] = {}
        wrong = ""
        for name in step.reads:
            held = self.memory.held.get(name)
            if held is None:
                continue
            wrong = wrong or held.wrong
            content = before.get(name) or held.content
            if content is not None and held.value is not None:
                shaped = self.memory.shaped(held, content)
                if shaped is not None:
                    sources[held.value] = shaped
                    continue
            sources |= {value: one for value, one in held.sources.items() if value not in sources}
            others |= dict.fromkeys(held.launches)
        return sources, tuple(others), wrong

    def _unknown(self, step: ScheduleStep, before: Mapping[str, Content]) -> str:
        # why it is not known what the step read
        read = (held for name in step.reads if (held := self.memory.held.get(name)) is not None)
        return next((one.unknown for one in read if one.unknown and one.content is None), "")

    def _operators(self, step: ScheduleStep) -> tuple[str, ...]:
        # of libraries: that of a step, and those whose results it reads and that are judged together with it
        read = [one for name in step.reads if (one := self.memory.held.get(name)) is not None]
        unknown = [one for one in read if one.value is None or one.content is None]
        own: list[str] = []
        if step.kind == "library" and step.nodes:  # its nodes are also those that it reads, and views
            program = self.memory.program
            made = [node for node in step.nodes if not program.is_view(node)]
            own = [self._operator(max(made or step.nodes, key=program.order.__getitem__))]
        return tuple(dict.fromkeys((*(name for one in unknown for name in one.operators), *own)))

    # ---- what a step leaves

    def _launched(
        self, made: LaunchedStep, targets: dict[str, BufferContent], others: tuple[int, ...], wrong: str
    ) -> None:
        written = self._written(made, targets)
        earlier = [one for one in self.writers.launches if one.index in others]
        verdict = StepJudge(self.memory).verdict(targets, written, [*earlier, *made.launches])
        if verdict.verdict == "right" and wrong:
            verdict.verdict, verdict.why = "inputs wrong", wrong
        for launch in made.launches:
            self.launches.append(
                JudgedLaunch(
                    launch.index, launch.kernel_name, self.graph, verdict.verdict,
                    tuple(verdict.nodes or made.step.nodes),
                    self.lines(verdict.nodes or made.step.nodes),
                    tuple(verdict.wrong), verdict.why,
                    (*others, *(one.index for one in made.launches if one is not launch)),
                    tuple(verdict.rounded), self._operators(made.step), tuple(verdict.unjudged),
                )
            )  # fmt: skip
        if verdict.verdict == "right" and not verdict.unjudged:
            self._acquit(others, (made.launches[0].index,))
        if verdict.verdict == "off":
            first, off = made.launches[0], {one.buffer for one in verdict.wrong}
            for name, held in targets.items():
                judged = held.content is not None and held.value is not None
                if not judged or {name, self.memory.schedule.location(name)} & off:
                    held.wrong = f"launch {first.index} {first.kernel_name} is off"

    def _acquit(self, launches: tuple[int, ...], others: tuple[int, ...] = ()) -> None:
        # of launches that leave partial results: a value that is right was computed from those
        for i, one in enumerate(self.launches):
            if one.launch in launches and one.why == PARTIAL:
                self.launches[i] = replace(one, verdict="right", why="", others=others)

    def _written(
        self, made: LaunchedStep, targets: dict[str, BufferContent]
    ) -> dict[str, tuple[str, Content]]:
        # by name of the schedule: the argument, and its content after the launch
        # of contents that overwrite each other within the step, the last one is left
        locations = {self.memory.schedule.location(name): name for name in targets}
        written: dict[str, tuple[str, Content]] = {}
        for call in made.calls:
            for name, position, argument in call.arguments():
                own = locations.get(name, name if name in targets else None)
                if own is None or not argument.writes or call.launch is None:
                    continue
                targets[own].by, targets[own].storage = call.launch, argument.storage
                content = self.memory.contents.argument(call.launch, position, argument, "after")
                if content is not None:
                    shaped = self.memory.shaped(targets[own], content)
                    targets[own].content = shaped if shaped is not None else content
                    if shaped is None:
                        targets[own].value = None
                    written[own] = argument.name, targets[own].content or content
        return written

    def _instead(self, name: str, held: BufferContent, made: LaunchedStep) -> str:
        # the buffer whose storage a step was passed for that which an operator of a library made
        if self._storages is None:
            self._storages = library_storages(self._steps, self.memory.operators, self._called)
        own, passed = self._storages.get(name), self._passed(held.content, made)
        others = [one for one, storage in self._storages.items() if storage in passed]
        if own is None or own in passed or len(others) != 1:
            return ""
        return others[0] if self._holds(held.content, self.memory.held[others[0]]) else ""

    def _holds(self, content: Content | None, other: BufferContent) -> bool:
        # whether a content is what another buffer should hold
        try:
            assert content is not None and other.value is not None
            plan, sources = self.memory.plan(other.value, other.sources)
            return not StepJudge(self.memory).wrong(plan, sources, "", "", content)[0]
        except (NoReference, AssertionError):
            return False

    def _passed(self, content: Content | None, made: LaunchedStep) -> set[int | None]:
        # the storages of the arguments in which a step read a content
        return {
            argument.storage
            for call in made.calls
            for _, position, argument in call.arguments()
            if call.launch is not None and content is not None
            if (read := self.memory.contents.argument(call.launch, position, argument, "before"))
            if read.blob == content.blob
        }

    def _called(self, step: ScheduleStep) -> str:
        return next(iter(self._operators(step)[-1:]), "").partition(".")[0]

    def _late(
        self,
        name: str,
        held: BufferContent,
        returned: _Returned | None = None,
        reader: LaunchedStep | None = None,
    ) -> str:
        # the result of an operator of a library, or of launches whose results were not kept
        # returned -- the content is that of another buffer, too, and no launch read it
        # reader -- has the content; the result says what it read in its stead, as of `_meet`
        assert held.step is not None and held.value is not None and held.content is not None
        program, node = self.memory.program, held.value.node
        if is_seed(program.nodes[node]) or node in program.undetermined:
            return ""  # no number would be wrong
        try:
            plan, sources = self.memory.plan(held.value, held.sources)
            if self.draws_unknown(plan):
                raise NoReference("random numbers that it draws")
            wrong, _ = StepJudge(self.memory).wrong(plan, sources, name, name, held.content)
        except NoReference as reason:
            of, what = f"node {node}", "its value"
            if held.value.writes:
                of, what = f"the memory of {of}", "what it holds"
            self.unjudged.append(f"{of}: no reference, because {what} depends on {reason}")
            return ""
        if not wrong:
            self._acquit(held.launches)
            return ""
        if held.unknown:  # it may be right for what it read
            return ""
        if reader is not None and (instead := self._instead(name, held, reader)):
            return self._exchanged(name, held, reader.launches[0], instead, wrong[0])
        held.wrong = f"{self._operator(held.value.node)} is off"
        if held.launches:
            self._accuse(held, wrong[0], plan)
        elif returned is not None:
            node = held.value.node
            self.findings.append(
                Overwritten(
                    self.graph, returned.result, self.memory.schedule.location(name), node, None, "",
                    GENERATED, wrong[0], self.lines([node]), instead=returned.buffer,
                )
            )  # fmt: skip
        else:
            called = CalledOperator(self.memory, plan, sources, held.content)
            self.findings.append(self._library(name, held, wrong[0], called))
        return ""

    def _exchanged(
        self, name: str, held: BufferContent, reader: KernelLaunch, instead: str, wrong: WrongElements
    ) -> str:
        location, launch = self.memory.schedule.location, f"launch {reader.index} {reader.kernel_name}"
        node = held.value.node if held.value is not None else ""
        held.content, held.unknown = None, f"{launch} was passed {location(instead)} for {location(name)}"
        self.findings.append(
            Overwritten(
                self.graph, launch, location(name), node, None, "", GENERATED, wrong, self.lines([node]),
                instead=location(instead),
            )
        )  # fmt: skip
        return held.unknown

    def _library(
        self, name: str, held: BufferContent, wrong: WrongElements, called: CalledOperator
    ) -> Overwritten | LibraryOff:
        assert held.value is not None
        operator = self._operator(held.value.node)
        readers, right = self.writers.undeclared(name, held), called.repeats_right()
        if not readers and right and (misread := called.misread()) is not None:
            read, instead = misread
            buffer, source = self.memory.schedule.location(read), self.memory.held[read]
            by = self.writers.before(source, held.step)
            launch, kernel = (by.index, by.kernel_name) if by is not None else (None, "")
            return Overwritten(
                self.graph, operator, buffer, buffer, launch, kernel, GENERATED, wrong,
                self.lines([held.value.node]), instead="" if by is not None else instead,
            )  # fmt: skip
        before = self._unread(held.value.node, called.plan)
        others = tuple(f"{self._operator(node)} (node {node})" for node in before)
        lines = self.lines([held.value.node, *before])
        return LibraryOff(self.graph, operator, wrong, lines, readers, right, others)

    def _unread(self, node: str, plan: FxPlan) -> list[str]:
        # the values of a plan that operators of libraries left to others, and no launch read
        unread = (one for one in self.memory.held.values() if one.content is None and one.step is not None)
        nodes = {one.value.node for one in unread if one.value is not None}
        return [one for one in plan.nodes if one in nodes and one != node]

    def _operator(self, node: str) -> str:
        # the one that makes a node's value, as one of several results
        made = self.memory.program.nodes[node]
        while made.target == _PART and isinstance(source := made.args[0], dict):
            made = self.memory.program.nodes[source["node"]]
        return made.target

    def _accuse(self, held: BufferContent, wrong: WrongElements, plan: FxPlan) -> None:
        known = {one.launch: one.verdict for one in self.launches}
        suspects = [one for one in held.launches if known.get(one) != "right"] or held.launches
        for i, one in enumerate(self.launches):
            if one.launch in suspects and one.verdict != "off":
                others = tuple(index for index in suspects if index != one.launch)
                self.launches[i] = JudgedLaunch(
                    one.launch, one.kernel, one.graph, "off", plan.nodes, self.lines(plan.nodes),
                    (wrong,), "", others,
                )  # fmt: skip
                held.wrong = f"launch {one.launch} {one.kernel} is off"

    def lines(self, nodes: Sequence[str]) -> tuple[PythonLine, ...]:
        """The Python lines that nodes of the graph come from."""
        return tuple(dict.fromkeys(self._lines(nodes)))

    def _lines(self, nodes: Sequence[str]) -> Iterator[PythonLine]:
        for name in nodes:
            node = self.memory.program.nodes.get(name)
            line = self.memory.program.graph.line_of(node) if node is not None else None
            if line is not None:
                yield line
