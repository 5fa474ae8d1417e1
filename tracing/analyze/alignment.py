"""Which launch of one run is the same launch in the other, when launches are missing, added or reordered.

Launches are paired stream by stream: work on one stream runs in order, between streams there is none. A
launch is known by its kernel's name; a pair may still differ in its configuration. While both runs go in
step nothing is held back. Where they leave it, up to `window` launches of each are looked at, and the
shortest way back is taken: the fewest launches left out, over both runs, behind which CONFIRM launches in a
row have the same names. What was left out is missing in one run or added by the other; where as many were
left out here as there, they took one another's place, and are paired.

Limits. Of equal launches in a row, the last counts as the one added. A stretch of more than `window`
launches that only one run has is taken for missing and added altogether. Streams that drift apart by more
than `window` launches are not brought together. A stream's number means nothing outside of its process, so
streams are paired by the launches that they begin with.

Cost: about 0.3 µs a pair in step; a search of the window, about 1 µs a launch in it, for each place where
the runs leave step. Memory: the window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from tracing.digests import Row

CONFIRM = 4  # launches in a row that must agree behind a gap: layers of a model repeat single ones
WINDOW = 1024

Named: TypeAlias = Callable[[int], str]  # the name of a signature's kernel
Pair: TypeAlias = tuple[Row | None, Row | None]


def aligned(
    a: Iterator[Row],
    b: Iterator[Row],
    name_a: Named,
    name_b: Named,
    streams: Mapping[int, int] | None = None,
    window: int = WINDOW,
) -> Iterator[Pair]:
    """The launches of two processes, paired; None stands for the launch that a run does not have.

    a, b           -- rows in launch order, read once
    name_a, name_b -- the kernel's name of a signature of each process
    streams        -- which streams of run b do the work of which of run a, as far as that is known
    """
    one, other = _Side(a, name_a), _Side(b, name_b)
    partner = _Partners(one, other, streams or {})
    while True:
        if not one.held and not other.held:
            yield from _in_step(one, other, partner)
        one.fill(1)
        if not one.held:
            yield from ((None, row) for row in other.rest())
            return
        stream = one.oldest()
        behind = partner.of(stream, window)
        yield from _next(one.queues[stream], other.queues.get(behind, deque()), one, other, behind, window)
        if other.held >= window:  # streams that run a does not have must not fill the window
            for strange in partner.strangers():
                yield None, other.take(strange)


class _Side:
    # one run, looked at ahead; its launches wait in a queue for each stream

    def __init__(self, rows: Iterator[Row], name: Named) -> None:
        self.rows, self.name = rows, name
        self.queues: dict[int, deque[Row]] = {}
        self.held = 0

    def fill(self, count: int) -> None:
        while self.held < count and (row := next(self.rows, None)) is not None:
            self.hold(row)

    def hold(self, row: Row) -> None:
        self.queues.setdefault(row.line.stream, deque()).append(row)
        self.held += 1

    def oldest(self) -> int:
        waiting = ((queue[0].line.index, stream) for stream, queue in self.queues.items() if queue)
        return min(waiting)[1]

    def take(self, stream: int) -> Row:
        self.held -= 1
        return self.queues[stream].popleft()

    def rest(self) -> Iterator[Row]:
        while self.held:
            yield self.take(self.oldest())
        yield from self.rows

    def names(self, stream: int) -> list[str]:
        return [self.name(row.line.signature) for row in self.queues.get(stream, ())]


class _Partners:
    # which stream of run b does the work of a stream of run a

    def __init__(self, one: _Side, other: _Side, known: Mapping[int, int]) -> None:
        self._one, self._other = one, other
        self.known = dict(known)

    def of(self, stream: int, window: int) -> int:
        if stream not in self.known:
            self._other.fill(1)
            choice = self._free()
            if not any(self._begins_alike(stream, one) for one in choice):
                self._other.fill(window)
                choice = self._free()
            choice.sort(key=lambda one: (not self._begins_alike(stream, one), one != stream))
            self.known[stream] = choice[0] if choice else stream
        return self.known[stream]

    def strangers(self) -> list[int]:
        taken = set(self.known.values())
        queues = self._other.queues.items()
        return [stream for stream, queue in queues if stream not in taken for _ in queue]

    def agree(self, a: Row, b: Row) -> bool:
        return self.known.get(a.line.stream) == b.line.stream

    def _free(self) -> list[int]:
        taken = set(self.known.values())
        return [stream for stream, queue in self._other.queues.items() if queue and stream not in taken]

    def _begins_alike(self, stream: int, candidate: int) -> bool:
        return self._one.names(stream)[:1] == self._other.names(candidate)[:1]


def _in_step(one: _Side, other: _Side, partner: _Partners) -> Iterator[Pair]:
    # as long as both runs launch the same; the first launches that do not are held back
    for a in one.rows:
        b = next(other.rows, None)
        if b is None or one.name(a.line.signature) != other.name(b.line.signature) or not partner.agree(a, b):
            one.hold(a)
            if b is not None:
                other.hold(b)
            return
        yield a, b


def _next(
    queue: deque[Row], following: deque[Row], one: _Side, other: _Side, partner: int, window: int
) -> Iterator[Pair]:
    # the oldest launch of run a, or all up to where its stream is in step again
    stream = queue[0].line.stream
    if not following:
        other.fill(window)
        following = other.queues.get(partner, deque())
    if not following:
        yield one.take(stream), None
        return
    if one.name(queue[0].line.signature) == other.name(following[0].line.signature):
        yield one.take(stream), other.take(partner)
        return
    one.fill(window)
    other.fill(window)
    skipped, added = way_back(one.names(stream), other.names(partner))
    if skipped == added < window:
        for _ in range(skipped):
            yield one.take(stream), other.take(partner)
        return
    for _ in range(skipped):
        yield one.take(stream), None
    for _ in range(added):
        yield None, other.take(partner)


def way_back(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    """How many names to leave out of each so that what follows agrees, the fewest; all if nothing does.

    The end of both agrees with itself, however short; elsewhere CONFIRM names in a row must. Of two ways that
    leave out as many, the one behind which more names agree is taken.
    """
    found: dict[tuple[str, ...], int] = {}
    for start in range(len(b)):
        found.setdefault(tuple(b[start : start + CONFIRM]), start)
    best, agreeing = (len(a), len(b)), 0
    for start in range(len(a)):
        if start > sum(best):
            break
        behind = found.get(tuple(a[start : start + CONFIRM]))
        if behind is None or start + behind > sum(best):
            continue
        length = _agreeing(a[start:], b[behind:])
        if (start + behind, -length) < (sum(best), -agreeing):
            best, agreeing = (start, behind), length
    return best


def _agreeing(a: Sequence[str], b: Sequence[str]) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
