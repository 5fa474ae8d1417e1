"""Finds the draw of random numbers that moves the generator of one run ahead of that of the other."""

from __future__ import annotations

from tracing.analyze.compare.timeline.memory import Write
from tracing.analyze.compare.timeline.operator_calls import CalledOperators


class UnlikeDraws:
    """The draws of one process of each run, in order."""

    def __init__(self, a: CalledOperators, b: CalledOperators) -> None:
        self._a, self._b = a, b
        self._alike = 0  # so many draws at the start are known to be alike

    def unlike_before(self, a: Write, b: Write) -> tuple[str, str] | None:
        """The first draws before two calls that differ, with their lines; empty: none there.

        None: all are alike, or the operator draws no random numbers.
        """
        if a.number < 0 or b.number < 0 or not self._a.draws(a.name):
            return None
        counts = self._a.draws_before(a.number), self._b.draws_before(b.number)
        both = min(counts)
        while self._alike < both and self._a.draw(self._alike) == self._b.draw(self._alike):
            self._alike += 1
        if self._alike < both:
            return self._a.draw_text(self._alike), self._b.draw_text(self._alike)
        if counts[0] == counts[1]:
            return None
        return (self._a.draw_text(both), "") if counts[0] > both else ("", self._b.draw_text(both))
