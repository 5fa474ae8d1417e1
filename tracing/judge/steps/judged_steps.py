"""What is judged so far of one call of a compiled graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from tracing.analyze.judge.findings import JudgedLaunch, LibraryOff, NotLaunched, Overwritten, WrongElements
from tracing.judge.fx.fx_values import FxPlan, FxValue
from tracing.judge.fx.random_numbers import draws_as_known
from tracing.judge.steps.buffer_writers import BufferWriters
from tracing.judge.steps.graph_memory import GraphMemory
from tracing.judge.steps.step_verdict import PARTIAL
from tracing.judge.steps.values import values_of


@dataclass(slots=True)
class JudgedSteps:
    """The verdicts on the launches of one call, and what is off in it."""

    graph: int
    memory: GraphMemory
    launches: list[JudgedLaunch] = field(default_factory=list)
    findings: list[Overwritten | LibraryOff | NotLaunched] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)  # operators of libraries
    writers: BufferWriters = field(init=False)
    values: dict[str, FxValue] = field(init=False)  # values that names of the schedule hold

    def __post_init__(self) -> None:
        self.writers = BufferWriters(self.memory)
        self.values = values_of(self.memory.schedule, self.memory.program)

    def draws_unknown(self, plan: FxPlan) -> bool:
        """True if a plan draws random numbers that are not those which the launches of the call draw."""
        return self.memory.draws_unknown(plan, self.writers.launches)

    @property
    def draws_known(self) -> bool:
        """True if the random numbers that the launches of the call draw follow from their seeds."""
        return draws_as_known(self.memory.contents.run, self.writers.launches)

    @property
    def any_off(self) -> bool:
        return bool(self.findings) or any(one.verdict == "off" for one in self.launches)

    def acquit(self, launches: Collection[int], others: tuple[int, ...] = ()) -> None:
        """Launches that leave partial results are right: a value that is right was computed from those.

        others -- launches that computed it
        """
        for i, one in enumerate(self.launches):
            if one.launch in launches and one.why == PARTIAL:
                self.launches[i] = replace(one, verdict="right", why="", others=others)

    def accuse(self, launches: Sequence[int], wrong: WrongElements, nodes: tuple[str, ...]) -> str:
        """One of some launches is off, unless it is right; "launch 3 k is off": the last of those.

        nodes -- compute the value that is wrong
        """
        known = {one.launch: one.verdict for one in self.launches}
        suspects = [one for one in launches if known.get(one) != "right"] or launches
        lines, accused = self.memory.program.lines(nodes), ""
        for i, one in enumerate(self.launches):
            if one.launch in suspects and one.verdict != "off":
                others = tuple(index for index in suspects if index != one.launch)
                self.launches[i] = JudgedLaunch(
                    one.launch, one.kernel, one.graph, "off", nodes, lines, (wrong,), "", others
                )
                accused = f"launch {one.launch} {one.kernel} is off"
        return accused
