"""Finds reordered pairs of launches in which one accesses bytes that the other writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from tracing.analyze.compare.timeline.timeline_step import TimelineStep
from tracing.views import relation

_REMEMBERED = 2048  # partners before a launch that moved


class Partners(NamedTuple):
    """One launch of both runs."""

    a: TimelineStep
    b: TimelineStep
    equal: bool  # it read and wrote equal bits


class ReorderedPair(NamedTuple):
    """Two launches that changed their order although they share bytes that one of them writes."""

    first: Partners  # in run a
    second: Partners
    arguments: tuple[str, str]  # of the first and of the second, which share bytes
    shown: bool  # False: both launches read and wrote equal bits; only the memory afterwards may differ


class LaunchOrder:
    """Keeps partners, and finds those whose order differs between the two runs."""

    def __init__(self) -> None:
        self._recent: deque[Partners] = deque(maxlen=_REMEMBERED)
        self._moved: deque[Partners] = deque(maxlen=_REMEMBERED)
        self._highest = -1  # of run b, so far
        self.independent = 0  # pairs of reordered launches that share no written bytes

    def add(self, one: Partners, *, moved: bool) -> Iterator[ReorderedPair]:
        """Add the next partners; returns the earlier partners with which they are reordered."""
        moved = moved or (not one.equal and one.b.index < self._highest)
        self._highest = max(self._highest, one.b.index)
        for other in self._recent if moved else self._moved:
            if (other.a.index < one.a.index) != (other.b.index < one.b.index):
                first, second = (other, one) if other.a.index < one.a.index else (one, other)
                met = _meet(first.a, second.a) or _meet(first.b, second.b)
                shown = not (one.equal and other.equal)
                self.independent += met is None or not shown
                if met is not None:
                    yield ReorderedPair(first, second, met, shown)
        self._recent.append(one)
        if moved:
            self._moved.append(one)


def _meet(first: TimelineStep, second: TimelineStep) -> tuple[str, str] | None:
    # an argument of each launch that share bytes, if one of the two writes them
    for writes, address, meta, own in first.ranges():
        for also_writes, its_address, its_meta, name in second.ranges():
            shared = writes or also_writes
            if shared and relation(its_meta, meta, its_address - address) != "disjoint":
                return own, name
    return None
