"""Which earlier pass makes a compile die in a later one, found by leaving passes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tracing.analyze.bisect.layers import MLIR
from tracing.analyze.bisect.leave_out import Dropped, Instance, LeaveOut
from tracing.analyze.bisect.search import Contradiction, FirstBad, Judgement, Undecided, Verdict, border
from tracing.analyze.bisect.search_events import Searching


@dataclass(frozen=True, slots=True)
class Died:
    """How a compile died."""

    same: bool  # as the full one
    said: str


class CrashBuilds:
    """Compiles without some passes, judged by how they end: as the full one does, or not there."""

    def __init__(self, die: Callable[[Dropped, bool], Died | None], times: int) -> None:
        """Judge against one death.

        die   -- compiles without some passes, from the source if asked to, and tells how it died; None: it
                 got past where the full one died
        times -- that each compile is tried: a death may not come each time
        """
        self._die, self._times = die, times
        self._known: dict[Dropped, Judgement] = {}
        self._from_source = False

    def from_source(self) -> None:
        """Forget what is known, and begin every compile at its source."""
        self._known.clear()
        self._from_source = True

    def judged(self, dropped: Dropped, *, again: bool = False) -> Judgement:
        """Bad: it dies the same death; good: it gets past it; skip: it dies another one."""
        if again or dropped not in self._known:
            self._known[dropped] = self._judged(dropped, again)
        return self._known[dropped]

    def failure(self, dropped: Dropped) -> str:
        """The other death that it dies, if it does."""
        judgement = self.judged(dropped)
        return judgement.detail if judgement.verdict == "skip" else ""

    def _judged(self, dropped: Dropped, again: bool) -> Judgement:
        for _ in range(self._times):
            death = self._die(dropped, again or self._from_source)
            if death is not None and death.same:
                return Judgement("bad", death.said)
            if death is not None:
                return Judgement("skip", f"it dies otherwise: {death.said}")
        return Judgement("good", "it does not die there")


@dataclass(frozen=True, slots=True)
class Provoked:
    """The pass of MLIR that makes a compile die later, or why none is named."""

    answer: FirstBad | Undecided


def provoking(
    passes: Sequence[Instance], builds: CrashBuilds, advance: Callable[[], None]
) -> Iterator[Searching | Provoked]:
    """Search the pass of MLIR that provokes a death; ends with Provoked.

    passes  -- that ran before the death
    advance -- called for each build that is tried

    A compile from the middle may differ from one from the source. If an answer does not hold, every build
    then begins at the source, and the search starts a second time.
    """
    search = LeaveOut(MLIR, passes, builds, builds.judged(frozenset()))
    search.advance = advance
    yield Searching("leaving out MLIR passes", len(search.candidates()))
    try:
        yield Provoked(search.search())
        return
    except Contradiction:
        builds.from_source()
    yield Searching("leaving out MLIR passes", len(search.candidates()))
    try:
        yield Provoked(search.search())
    except Contradiction as contradiction:
        because = f"it does not always die: {contradiction}; `--repeat-judge 9`"
        yield Provoked(Undecided(MLIR, because))


def provoking_in_llvm(count: int, verdict: Callable[[int], Verdict]) -> int | str:
    """The position of LLVM's pass that provokes a death, or why none is named.

    count   -- of LLVM's passes that ran before the death
    verdict -- with the first so many of them: bad if it dies the same death

    Cost: 1 + log2(count) builds.
    """
    first = verdict(0)
    good, bad = border(count, verdict) if first == "good" and count else (0, 0)
    if bad - good == 1:
        return good
    because = {
        "bad": "without all of them it dies as well",
        "skip": "what is left without them cannot be compared",
    }
    return because.get(first, "some builds die otherwise")
