"""Collects the facts about two runs that a comparison reports in addition to the differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tracing.analyze.align.alignment import WINDOW
from tracing.analyze.compare.divergence_kinds import Divergence, InputDiffers, OutputDiffers
from tracing.analyze.compare.unwritten_memory import UnwrittenMemory
from tracing.errors import Problem
from tracing.store import Run


@dataclass(slots=True)
class Notes:
    """Counts, doubts, and the launches and results that were not compared."""

    a: Run
    b: Run
    window: int = WINDOW
    selected: str = ""  # the launches that both runs selected; empty: all
    covers: Callable[[int, str, str, int], bool] | None = None
    # (index, kernel, phase, rank) -> True if both runs recorded such a launch; None: both recorded the same
    unrecorded: str = ""  # why unrecorded launches may have written memory
    unknown: str = ""  # why the writer of some memory is unknown; empty: the host wrote it
    started: bool = False  # the case started from other tensors
    pairs: int = 0  # launches that both runs have
    undigested: int = 0  # of these, those without digests in one run
    swapped: int = 0  # pairs of independent launches that changed their order
    reported: int = 0  # differences, without those that repeat one
    unwritten: int = 0  # results that differ in memory whose contents differed before the launch
    uninitialised: int = 0  # launches whose results differ because they read uninitialised memory
    unwritten_memory: list[UnwrittenMemory] = field(default_factory=list)  # that differs and is ignored
    suspects: list[Divergence] = field(default_factory=list)  # the first of each kind of doubt
    first_consequence: Divergence | None = None
    addresses: set[tuple[str, str]] = field(default_factory=set)  # kernels and arguments that were left out
    left_out: dict[str, None] = field(default_factory=dict)  # not compared, and usually not recorded
    damaged: Problem | None = None  # the first damage that ended a part of the comparison
    notes: list[str] = field(default_factory=list)  # what was not compared, and why
    _following: set[tuple[int, int]] = field(default_factory=set)  # rank and index of a launch

    @property
    def consequences(self) -> int:
        """The number of launches whose differences follow, or may follow, from earlier ones."""
        return len(self._following)

    @property
    def complete(self) -> bool:
        """True if everything was compared that both runs were requested to record.

        False if one of them is damaged, was interrupted, or lacks a process.
        """
        asked = "none" not in (self.a.info.digests, self.b.info.digests)
        return not (self.notes or self.covers or (self.undigested and asked))

    def add(self, note: str) -> None:
        """Note something that was not compared; repetitions are ignored."""
        if note not in self.notes:
            self.notes.append(note)

    @contextmanager
    def damage(self, consequence: str) -> Iterator[None]:
        """While active, damage of a run is noted, with what is not compared because of it."""
        try:
            yield
        except Problem as problem:
            self.damages(problem, consequence)

    def damages(self, problem: Problem, consequence: str) -> None:
        """Note damage of a run, and what is not compared because of it."""
        self.damaged = self.damaged or problem
        self.add(f"{problem.problem}; {consequence}")

    def select(self, what: str) -> None:
        """Note launches to which both runs limit the comparison; repetitions are ignored."""
        if what not in self.selected:
            self.selected = "; ".join(filter(None, (self.selected, what)))

    def follows(self, divergence: InputDiffers | OutputDiffers) -> None:
        """Note a difference that follows, or may follow, from another one."""
        self._following.add((divergence.pair.rank, divergence.pair.launch.index))
        self.first_consequence = self.first_consequence or divergence

    def depends(self, divergences: Iterable[InputDiffers]) -> None:
        """Note a launch whose results depend on uninitialised memory."""
        self.uninitialised += 1
        self._suspect(next(iter(divergences)))

    def doubtful(self, divergence: OutputDiffers) -> None:
        """Note a result that may differ only in unwritten elements."""
        self.unwritten += divergence.doubt == "unwritten"
        self._suspect(divergence)

    def _suspect(self, divergence: Divergence) -> None:
        kinds = [(type(one), getattr(one, "doubt", "")) for one in self.suspects]
        if (type(divergence), getattr(divergence, "doubt", "")) not in kinds:
            self.suspects.append(divergence)

    @property
    def suspect(self) -> Divergence | None:
        """The first suspect if results differ although no launch does."""

        def rank(divergence: Divergence) -> tuple[bool, bool]:
            untouched = isinstance(divergence, OutputDiffers) and divergence.doubt == "untouched"
            return not isinstance(divergence, InputDiffers), untouched

        return min(self.suspects, key=rank, default=self.first_consequence)
