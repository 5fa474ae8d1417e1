"""Find the earlier pass that makes a compile crash in a later one, by leaving passes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tracing.analyze.bisect.layers import LLVM, MLIR
from tracing.analyze.bisect.leave_out import Dropped, Instance, LeaveOut
from tracing.analyze.bisect.search import (
    BuildTried,
    Contradiction,
    FirstBad,
    JudgeAnswer,
    Judgement,
    Step,
    Suspect,
    Undecided,
    narrowed,
)
from tracing.analyze.bisect.search_events import Building, Searching


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """How a compile died."""

    same: bool  # the result of the full pipeline
    message: str


class CrashBuilds:
    """Compiles without some passes; each is judged by whether it crashes as the full compile does."""

    def __init__(self, die: Callable[[Dropped, bool], CrashPoint | None], times: int) -> None:
        """Compare builds with the crash of the full compile.

        die   -- compiles without some passes, from the source if requested, and returns how it died; None: it
                 passes the point at which the full compile died
        times -- how often each compile is tried: a crash may be intermittent
        """
        self._die, self._times = die, times
        self._known: dict[Dropped, Judgement] = {}
        self._from_source = False

    def from_source(self) -> None:
        """Clear the cache, and begin every compile at its source."""
        self._known.clear()
        self._from_source = True

    def judged(self, dropped: Dropped, *, anew: bool = False) -> Judgement:
        """Bad: it crashes in the same manner; good: it gets past the crash; skip: it crashes differently."""
        if anew or dropped not in self._known:
            self._known[dropped] = self._judged(dropped, anew)
        return self._known[dropped]

    def failure(self, dropped: Dropped) -> str:
        """The different crash, if there is one."""
        judgement = self.judged(dropped)
        return judgement.detail if judgement.verdict == "skip" else ""

    def _judged(self, dropped: Dropped, anew: bool) -> Judgement:
        for _ in range(self._times):
            ending = self._die(dropped, anew or self._from_source)
            if ending is not None and ending.same:
                return Judgement("bad", ending.message)
            if ending is not None:
                return Judgement("skip", f"it dies with another error: {ending.message}")
        return Judgement("good", "it does not die there")


@dataclass(frozen=True, slots=True)
class Hangs:
    """A compile that hangs: each further compile that hangs costs its whole limit."""

    seconds: float  # time limit of each further compile
    most: int  # estimated number of further compiles


@dataclass(frozen=True, slots=True)
class CompileCrash:
    """The pass, or the part of a stage, in which a compile crashes."""

    layer: str  # the compiler of the pass: MLIR, LLVM; "": no pass, but another part of a stage
    step: Step  # the pass; index -1: it has no number
    stage: str
    message: str
    facts: Mapping[str, str] = field(default_factory=dict)  # details by title, and commands that show more


@dataclass(frozen=True, slots=True)
class Provoked:
    """The earlier pass of one layer that makes a compile crash, or the reason why none is named."""

    layer: str
    step: Step | None
    because: str = ""
    needed: tuple[Step, ...] = ()  # still earlier passes without which it does not crash either
    suspects: tuple[Suspect, ...] = ()


CrashEvent: TypeAlias = Building | Searching | BuildTried | Hangs | CompileCrash | Provoked


def provoking(passes: Sequence[Instance], builds: CrashBuilds) -> Iterator[Searching | BuildTried | Provoked]:
    """Search for the MLIR pass that provokes a crash; ends with Provoked.

    passes -- that ran before the crash

    A compile from the middle may differ from one from the source. If an answer is not confirmed, the
    search is repeated with builds that begin at the source.
    """
    search = LeaveOut(MLIR, passes, builds, builds.judged(frozenset()))
    yield Searching("leaving out MLIR passes", len(search.candidates()))
    try:
        yield _provoked((yield from search.search()))
        return
    except Contradiction:
        builds.from_source()
    yield Searching("leaving out MLIR passes", len(search.candidates()))
    try:
        yield _provoked((yield from search.search()))
    except Contradiction as contradiction:
        yield Provoked(MLIR, None, f"it does not always die: {contradiction}; `--repeat-judge 9`")


def _provoked(answer: FirstBad | Undecided) -> Provoked:
    if isinstance(answer, FirstBad):
        return Provoked(answer.layer, answer.step, needed=answer.needed)
    return Provoked(answer.layer, None, answer.because, suspects=answer.suspects)


def provoking_in_llvm(
    steps: Sequence[Step], verdict: Callable[[int], JudgeAnswer]
) -> Iterator[BuildTried | Provoked]:
    """Search for the LLVM pass that provokes a crash; ends with Provoked.

    steps   -- LLVM's passes that ran before the crash
    verdict -- of a compile with the first n of them: bad if it crashes in the same manner

    Cost: 1 + log2(steps) builds.
    """
    first = verdict(0)
    yield BuildTried()
    good, bad = 0, 0
    if first == "good" and steps:
        good, bad = yield from narrowed(len(steps), verdict)
    if bad - good == 1:
        yield Provoked(LLVM, steps[good])
        return
    because = {
        "bad": "without all of them it dies, too",
        "skip": "the build without them cannot be compared",
    }
    yield Provoked(LLVM, None, because.get(first, "some builds die with another error"))
