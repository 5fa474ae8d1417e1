"""Pair the launches of two runs, even if launches are missing, added or reordered.

Launches are paired queue by queue, because only the launches of one thread on one stream are ordered. While
both runs launch the same kernels on the same bits, no launch is held back. After a difference, up to `window`
launches of each run are compared:

- if the kernels' names differ, the fewest launches of both runs are skipped such that the next CONFIRM names
  are equal; fewer than NEAR, so that most of the nearby launches agree, in order. Launches skipped in both
  runs are matched with each other;
- if the names agree and the launches differ, the launches of this kernel within NEAR are matched, because one
  of them may be reordered or missing;
- a launch without a match waits for its match if the other run launches its kernel more often from here on.

Limits. A stretch of more than `window` launches that only one run has counts as missing and added. Queue
numbers mean nothing outside of their process, so queues are paired by their first launches.

Cost: about 1 µs per pair while both runs agree; for each position at which they stop agreeing, a search of
the window with some 2 µs per launch in it. Memory: the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Generic, NamedTuple

from tracing.analyze.align.launch_matching import Launches, Queue, T, first_in_order, matched
from tracing.analyze.align.launch_queues import NEAR, QueuePartners, QueueSide

CONFIRM = 4  # launches in a row that must agree after a gap: layers of a model repeat single ones
WINDOW = 1024
_ALL = 1 << 62


class AlignedPair(NamedTuple, Generic[T]):
    """A launch of both runs, or of only one."""

    a: T | None
    b: T | None
    moved: bool = False  # the other run has this launch at another position


class Alignment(Generic[T]):
    """The launches of two processes, paired."""

    def __init__(
        self,
        a: Iterator[T],
        b: Iterator[T],
        launches: Launches[T],
        queues: Mapping[Queue, Queue] | None = None,
        window: int = WINDOW,
    ) -> None:
        """Align `a` with `b`, launches in launch order, each read once.

        queues -- pairs of queues, of run a and of run b, that are known to do the same work
        """
        self._ask = launches
        self._a = QueueSide(a, lambda one: launches.kernel(one, 0))
        self._b = QueueSide(b, lambda one: launches.kernel(one, 1))
        self._partners = QueuePartners(self._a, self._b, launches, queues or {})
        self._window = window

    def is_idle(self) -> bool:
        """True if no launch waits for its partner."""
        return not any(side.held or side.waiting for side in (self._a, self._b))

    def __iter__(self) -> Iterator[AlignedPair[T]]:
        one, other = self._a, self._b
        while True:
            if not one.held and not other.held:
                yield from self._in_step()
            one.fill(1)
            if not one.held:
                yield from self._end()
                return
            queue = one.oldest()
            yield from self._next(queue, self._partners.of(queue, self._window))
            if other.held >= self._window:  # bounds the launches of queues that run a does not have
                for strange in self._partners.strangers():
                    yield from self._only(1, other.take(strange))
            yield from self._overdue()

    def _in_step(self) -> Iterator[AlignedPair[T]]:
        # as long as both runs launch the same; the first launches that do not are held back
        one, other = self._a, self._b
        for a in one.launches:
            b = next(other.launches, None)
            if b is None or not self._go_together(a, b):
                one.hold(a)
                if b is not None:
                    other.hold(b)
                return
            yield AlignedPair(a, b)

    def _go_together(self, a: T, b: T) -> bool:
        alike = self._a.kernel(a) == self._b.kernel(b) and self._partners.agree(a, b)
        return alike and not self._permuted(a, b)

    def _permuted(self, a: T, b: T) -> bool:
        # a launch that waits may be the partner of either, unless they are equal
        kernel = self._a.kernel(a)
        waiting = self._a.waiting.of(kernel) or self._b.waiting.of(kernel)
        return self._ask.permuted(a, b) or (bool(waiting) and not self._ask.equal(a, b))

    def _next(self, queue: Queue, partner: Queue) -> Iterator[AlignedPair[T]]:
        # the oldest launch of run a, or all launches until its queue agrees with its partner
        one, other = self._a, self._b
        if not other.queues.get(partner):
            other.fill(self._window)
        if not other.queues.get(partner):
            yield from self._only(0, one.take(queue))
            return
        a, b = one.queues[queue][0], other.queues[partner][0]
        if one.kernel(a) != other.kernel(b):
            one.fill(self._window)
            other.fill(self._window)
            yield from self._left_out(queue, partner, *self._fewest_skips(queue, partner))
        elif self._permuted(a, b):
            yield from self._same_kernel(queue, partner)
        else:
            yield AlignedPair(one.take(queue), other.take(partner))

    def _fewest_skips(self, queue: Queue, partner: Queue) -> tuple[int, int]:
        # by the kernels' names in the whole window; if few are skipped, by all properties of the launches
        one, other = self._a, self._b
        names = fewest_skips(one.kernels(queue), other.kernels(partner))
        if max(names) >= NEAR:
            return names
        near = [list(islice(side.queues[number], NEAR)) for side, number in ((one, queue), (other, partner))]
        return first_in_order(near[0], near[1], self._ask) or names

    def _same_kernel(self, queue: Queue, partner: Queue) -> Iterator[AlignedPair[T]]:
        # one pair, or one launch without a partner: the partner of a first launch may wait or come later
        one, other = self._a, self._b
        one.fill(NEAR)
        other.fill(NEAR)
        kernel = one.kernel(one.queues[queue][0])
        waiting = one.waiting.of(kernel), other.waiting.of(kernel)
        a, b = one.like_first(queue), other.like_first(partner)
        matches = matched(
            [*waiting[0], *(launch for _, launch in a)],
            [*waiting[1], *(launch for _, launch in b)],
            self._ask,
        )
        first_a, first_b = len(waiting[0]), len(waiting[1])
        there = matches.get(first_a)
        here = next((n for n, m in matches.items() if m == first_b), None)
        if there is not None and there < first_b:
            yield AlignedPair(one.take(queue), other.waiting.take_at(kernel, there), True)
        elif here is not None and here < first_a:
            yield AlignedPair(one.waiting.take_at(kernel, here), other.take(partner), True)
        elif there is None:
            yield from self._only(0, one.take(queue))
        elif here is None:
            yield from self._only(1, other.take(partner))
        else:
            position = b[there - first_b][0]
            yield AlignedPair(one.take(queue), other.take(partner, position), position > 0)

    def _left_out(self, queue: Queue, partner: Queue, skipped: int, added: int) -> Iterator[AlignedPair[T]]:
        a = [self._a.take(queue) for _ in range(skipped)]
        b = [self._b.take(partner) for _ in range(added)]
        matches = matched(a, b, self._ask)
        if not matches and len(a) == len(b) < self._window and not self._elsewhere(a, b):
            matches = {n: n for n in range(len(a))}  # each launch took the position of the other
        for n, m in matches.items():
            yield AlignedPair(a[n], b[m], n != m)
        for n in range(len(a)):
            if n not in matches:
                yield from self._only(0, a[n])
        for m in range(len(b)):
            if m not in matches.values():
                yield from self._only(1, b[m])

    def _elsewhere(self, a: list[T], b: list[T]) -> bool:
        # whether one of these has a partner that was left out before, or comes later
        for launches, here, there in ((a, self._a, self._b), (b, self._b, self._a)):
            for launch in launches:
                if there.waiting.of(here.kernel(launch)) or self._comes(launch, here, there):
                    return True
        return False

    # ---- launches that may have changed their order over a distance

    def _only(self, side: int, launch: T) -> Iterator[AlignedPair[T]]:
        here, there = (self._a, self._b) if side == 0 else (self._b, self._a)
        partner = there.waiting.take(here.kernel(launch), lambda other: self._equal(side, launch, other))
        if partner is not None:
            yield AlignedPair(launch, partner, True) if side == 0 else AlignedPair(partner, launch, True)
        elif self._comes(launch, here, there):
            here.waiting.add(here.kernel(launch), launch)
        else:
            yield AlignedPair(launch, None) if side == 0 else AlignedPair(None, launch)

    def _equal(self, side: int, launch: T, other: T) -> bool:
        return self._ask.equal(launch, other) if side == 0 else self._ask.equal(other, launch)

    def _comes(self, launch: T, here: QueueSide[T], there: QueueSide[T]) -> bool:
        # whether the other run launches its kernel more often than this one from here on
        here.fill(self._window)
        there.fill(self._window)
        kernel = here.kernel(launch)
        return there.count(kernel) - here.count(kernel) > len(here.waiting.of(kernel))

    def _overdue(self) -> Iterator[AlignedPair[T]]:
        # those that waited for longer than the window are missing
        for launch in self._a.waiting.before(self._a.reached - self._window):
            yield AlignedPair(launch, None)
        for launch in self._b.waiting.before(self._b.reached - self._window):
            yield AlignedPair(None, launch)

    def _end(self) -> Iterator[AlignedPair[T]]:
        for launch in self._b.rest():
            yield from self._last(launch)
        for launch in self._a.waiting.before(_ALL):
            yield AlignedPair(launch, None)
        for launch in self._b.waiting.before(_ALL):
            yield AlignedPair(None, launch)

    def _last(self, launch: T) -> Iterator[AlignedPair[T]]:
        kernel = self._b.kernel(launch)
        partner = self._a.waiting.take(kernel, lambda one: self._ask.equal(one, launch))
        yield AlignedPair(partner, launch, partner is not None)


def fewest_skips(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    """The fewest keys to skip in each sequence so that the remaining ones agree; all keys if none do.

    Up to the end of either fewer keys may agree; elsewhere CONFIRM keys in a row must. Of two alignments that
    leave out as many, the one after which more keys agree is taken.
    """
    counts: dict[tuple[str, ...], int] = {}
    for start in range(len(b)):
        for length in range(2, CONFIRM + 1):  # shorter ones for the end of a
            counts.setdefault(tuple(b[start : start + length]), start)
    ends = [tuple(b[-length:]) for length in range(2, min(CONFIRM, len(b) + 1))]
    if b:
        counts.setdefault((b[-1],), len(b) - 1)
    best, agreeing = (len(a), len(b)), 0
    for start in range(len(a)):
        if start > sum(best):
            break
        after = counts.get(tuple(a[start : start + CONFIRM]))
        if after is None:  # the end of b, however short
            tails = (len(b) - len(end) for end in ends if tuple(a[start : start + len(end)]) == end)
            after = min(tails, default=None)
        if after is None or start + after > sum(best):
            continue
        length = _agreeing(a[start:], b[after:])
        if (start + after, -length) < (sum(best), -agreeing):
            best, agreeing = (start, after), length
    return best


def _agreeing(a: Sequence[str], b: Sequence[str]) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
