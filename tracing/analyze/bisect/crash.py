"""Which earlier pass makes a compile die in a later one, found by leaving passes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracing.analyze.bisect.leave_out import Dropped
from tracing.analyze.bisect.search import Judgement


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
        """Bad: it dies the same death; good: it gets past it; it cannot be told if it dies another one."""
        if again or dropped not in self._known:
            self._known[dropped] = self._judged(dropped, again)
        return self._known[dropped]

    def failure(self, dropped: Dropped) -> str:
        """The other death that it dies, if it does."""
        found = self.judged(dropped)
        return found.detail if found.verdict == "skip" else ""

    def _judged(self, dropped: Dropped, again: bool) -> Judgement:
        for _ in range(self._times):
            found = self._die(dropped, again or self._from_source)
            if found is not None and found.same:
                return Judgement("bad", found.said)
            if found is not None:
                return Judgement("skip", f"it dies in another way: {found.said}")
        return Judgement("good", "it does not die there")
