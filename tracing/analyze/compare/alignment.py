"""Which launch of one run is the same launch in the other, when launches are missing, added or reordered.

Launches are paired queue by queue: what one thread launches on one stream runs in order, between queues there
is no order. A launch is known by its kernel. While both runs go in step nothing is held back. Where they
leave it, up to `window` launches of each are looked at:

- the fewest launches are left out, over both runs, so that CONFIRM kernels in a row agree afterwards;
- of what was left out, launches of one kernel are paired: they changed places;
- where as many were left out of one run as of the other, they replaced one another, and are paired;
- a launch whose kernel the other run launches as often, later, waits for it: it changed places, too;
- where a kernel was launched on other inputs, its next launches, NEAR by, are paired by what they read and
  wrote: with equal bits, else with most arguments in common; what then is left over was left out.

Limits. A stretch of more than `window` launches that only one run has counts as missing and added. The number
of a queue means nothing outside of its process, so queues are paired by the launches that they begin with.

Cost: about 0.3 µs a pair in step; a search of the window, about 1 µs a launch in it, for each place where
the runs leave step. Memory: the window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

CONFIRM = 4  # launches in a row that must agree after a gap: layers of a model repeat single ones
WINDOW = 1024
NEAR = 64

Queue: TypeAlias = tuple[int, int]


class Launched(Protocol):
    """What is aligned."""

    @property
    def index(self) -> int:
        """The order in its run."""

    @property
    def queue(self) -> Queue:
        """Stream and thread."""


T = TypeVar("T", bound=Launched)


class Pair(NamedTuple, Generic[T]):
    """One launch of both runs, or of one."""

    a: T | None
    b: T | None
    moved: bool = False  # it is elsewhere in the other run


class Alignment(Generic[T]):
    """The launches of two processes, paired."""

    def __init__(
        self,
        a: Iterator[T],
        b: Iterator[T],
        key: Callable[[T, int], str],
        kernel: Callable[[T, int], str] | None = None,
        permuted: Callable[[T, T], bool] = lambda a, b: False,
        equal: Callable[[T, T], bool] = lambda a, b: True,
        content: Callable[[T], Hashable] = id,
        common: Callable[[T, T], int] = lambda a, b: 0,
        queues: Mapping[Queue, Queue] | None = None,
        window: int = WINDOW,
    ) -> None:
        """Align `a` with `b`, launches in launch order, each read once.

        key      -- what a launch of run 0 or 1 is known by: equal keys may be paired
        kernel   -- likewise, but coarser: what is left over is paired by it
        permuted -- whether two launches of one key read other bits, so that another partner is worth a search
        equal    -- whether two launches of one key read and wrote equal bits
        content  -- the bits that a launch read and wrote, where these tell launches of one kernel apart
        common   -- how many arguments of two launches of one key held equal bits
        queues   -- of run a, and which of run b do the same work, as far as that is known
        """
        coarse = kernel or key
        self._a = _Side(a, lambda one: key(one, 0), lambda one: coarse(one, 0))
        self._b = _Side(b, lambda one: key(one, 1), lambda one: coarse(one, 1))
        self._partners = _Partners(self._a, self._b, equal, queues or {})
        self._permuted, self._equal, self._content, self._common = permuted, equal, content, common
        self._window = window

    def is_idle(self) -> bool:
        """True if no launch waits for its partner."""
        sides = (self._a, self._b)
        return not any(side.held or side.waiting for side in sides)

    def __iter__(self) -> Iterator[Pair[T]]:
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
            if other.held >= self._window:  # queues that run a does not have must not fill the window
                for strange in self._partners.strangers():
                    yield from self._only_b(other.take(strange))
            yield from self._overdue()

    def _in_step(self) -> Iterator[Pair[T]]:
        # as long as both runs launch the same; the first launches that do not are held back
        one, other = self._a, self._b
        for a in one.launches:
            b = next(other.launches, None)
            if b is None or not self._go_together(a, b):
                one.hold(a)
                if b is not None:
                    other.hold(b)
                return
            yield Pair(a, b)

    def _go_together(self, a: T, b: T) -> bool:
        alike = self._a.key(a) == self._b.key(b) and self._partners.agree(a, b)
        return alike and not self._permuted(a, b)

    def _next(self, queue: Queue, partner: Queue) -> Iterator[Pair[T]]:
        # the oldest launch of run a, or all up to where its queue is in step again
        one, other = self._a, self._b
        if not other.queues.get(partner):
            other.fill(self._window)
        if not other.queues.get(partner):
            yield from self._only_a(one.take(queue))
            return
        a, b = one.queues[queue][0], other.queues[partner][0]
        if one.key(a) == other.key(b):
            yield from self._same_kernel(queue, partner)
            return
        one.fill(self._window)
        other.fill(self._window)
        yield from self._left_out(queue, partner, *way_back(one.keys(queue), other.keys(partner)))

    def _same_kernel(self, queue: Queue, partner: Queue) -> Iterator[Pair[T]]:
        one, other = self._a, self._b
        if not self._permuted(one.queues[queue][0], other.queues[partner][0]):
            yield Pair(one.take(queue), other.take(partner))
            return
        one.fill(NEAR)
        other.fill(NEAR)
        a, b = one.like_first(queue, NEAR), other.like_first(partner, NEAR)
        there, here = self._among([launch for _, launch in a], [launch for _, launch in b])
        if there is None:
            yield from self._only_a(one.take(queue))
        elif here is None:
            yield from self._only_b(other.take(partner))
        else:
            yield Pair(one.take(queue), other.take(partner, b[there][0]), there > 0)

    def _among(self, a: list[T], b: list[T]) -> tuple[int | None, int | None]:
        # launches of one kernel: which of b is the partner of a's first, and which of a that of b's first
        partner = _equal_contents([self._content(one) for one in a], [self._content(one) for one in b])
        left_a = [n for n in range(len(a)) if n not in partner]
        left_b = [n for n in range(len(b)) if n not in partner.values()]
        while left_a and left_b:
            n, m = self._closest(a, b, left_a, left_b)
            partner[n] = m
            left_a.remove(n)
            left_b.remove(m)
        back = {m: n for n, m in partner.items()}
        return partner.get(0), back.get(0)

    def _closest(self, a: list[T], b: list[T], left_a: list[int], left_b: list[int]) -> tuple[int, int]:
        # the first of a with that of b which has most in common with it, if that prefers it, too
        n = left_a[0]
        m = max(left_b, key=lambda k: (self._common(a[n], b[k]), -abs(k - n)))
        rival = max(left_a, key=lambda k: (self._common(a[k], b[m]), -abs(k - m)))
        preferred = self._common(a[rival], b[m]) > self._common(a[n], b[m])
        return n, min(left_b, key=lambda k: abs(k - n)) if preferred else m

    def _go_with(self, a: T, b: T) -> bool:
        return self._a.key(a) == self._b.key(b)

    def _same_kernels(self, a: T, b: T) -> bool:
        return self._a.kernel(a) == self._b.kernel(b)

    def _same(self, a: T, b: T) -> bool:
        return self._a.key(a) == self._b.key(b) and self._equal(a, b)

    def _left_out(self, queue: Queue, partner_queue: Queue, skipped: int, added: int) -> Iterator[Pair[T]]:
        a = [self._a.take(queue) for _ in range(skipped)]
        b = [self._b.take(partner_queue) for _ in range(added)]
        partner = self._matched(a, b)
        left_a = [n for n in range(len(a)) if n not in partner]
        left_b = [n for n in range(len(b)) if n not in partner.values()]
        if not partner and len(a) == len(b) < self._window and not self._elsewhere(a, b):
            yield from (Pair(one, other) for one, other in zip(a, b, strict=True))
            return
        for n in range(len(a)):
            if n in partner:
                yield Pair(a[n], b[partner[n]], partner[n] != n)
        for n in left_a:
            yield from self._only_a(a[n])
        for n in left_b:
            yield from self._only_b(b[n])

    def _elsewhere(self, a: list[T], b: list[T]) -> bool:
        # whether one of these has a partner that was left out before, or comes later
        for launches, here, there in ((a, self._a, self._b), (b, self._b, self._a)):
            for launch in launches:
                if there.waiting.of(here.key(launch)) or self._comes(launch, here, there):
                    return True
        return False

    def _matched(self, a: list[T], b: list[T]) -> dict[int, int]:
        # launches of one kernel that changed places: those with equal bits first
        partner: dict[int, int] = {}
        for test in (self._same, self._go_with, self._same_kernels):
            taken = set(partner.values())
            for n, one in enumerate(a):
                if n in partner:
                    continue
                found = next((m for m, other in enumerate(b) if m not in taken and test(one, other)), None)
                if found is not None:
                    partner[n] = found
                    taken.add(found)
        return partner

    # ---- launches that may have changed places over a distance

    def _only_a(self, launch: T) -> Iterator[Pair[T]]:
        found = self._b.waiting.pop_like(self._a.key(launch), lambda other: self._equal(launch, other))
        if found is not None:
            yield Pair(launch, found, True)
        elif self._comes(launch, self._a, self._b):
            self._a.waiting.add(self._a.key(launch), launch)
        else:
            yield Pair(launch, None)

    def _only_b(self, launch: T) -> Iterator[Pair[T]]:
        found = self._a.waiting.pop_like(self._b.key(launch), lambda one: self._equal(one, launch))
        if found is not None:
            yield Pair(found, launch, True)
        elif self._comes(launch, self._b, self._a):
            self._b.waiting.add(self._b.key(launch), launch)
        else:
            yield Pair(None, launch)

    def _comes(self, launch: T, here: _Side[T], there: _Side[T]) -> bool:
        # whether the other run launches its kernel more often than this one from here on
        here.fill(self._window)
        there.fill(self._window)
        key = here.key(launch)
        return there.count(key) - here.count(key) > len(here.waiting.of(key))

    def _overdue(self) -> Iterator[Pair[T]]:
        # those that waited for longer than the window are missing
        for launch in self._a.waiting.before(self._a.reached - self._window):
            yield Pair(launch, None)
        for launch in self._b.waiting.before(self._b.reached - self._window):
            yield Pair(None, launch)

    def _end(self) -> Iterator[Pair[T]]:
        for launch in self._b.rest():
            found = self._a.waiting.pop_like(self._b.key(launch), lambda one: self._equal(one, launch))  # noqa: B023
            yield Pair(found, launch, found is not None)
        for launch in self._a.waiting.all():
            yield Pair(launch, None)
        for launch in self._b.waiting.all():
            yield Pair(None, launch)


class _Waiting(Generic[T]):
    # launches that the other run is expected to make later

    def __init__(self) -> None:
        self._by_key: dict[str, list[T]] = {}

    def add(self, key: str, launch: T) -> None:
        self._by_key.setdefault(key, []).append(launch)

    def of(self, key: str) -> list[T]:
        return self._by_key.get(key, [])

    def pop_like(self, key: str, equal: Callable[[T], bool]) -> T | None:
        held = self._by_key.get(key)
        if not held:
            return None
        return held.pop(next((n for n, one in enumerate(held) if equal(one)), 0))

    def before(self, index: int) -> list[T]:
        if not any(self._by_key.values()):
            return []
        found = [one for held in self._by_key.values() for one in held if one.index < index]
        for held in self._by_key.values():
            held[:] = [one for one in held if one.index >= index]
        return sorted(found, key=lambda one: one.index)

    def __bool__(self) -> bool:
        return any(self._by_key.values())

    def all(self) -> list[T]:
        return sorted((one for held in self._by_key.values() for one in held), key=lambda one: one.index)


class _Side(Generic[T]):
    # one run, looked at ahead; its launches wait in a queue each

    def __init__(self, launches: Iterator[T], key: Callable[[T], str], kernel: Callable[[T], str]) -> None:
        self.launches, self.key, self.kernel = launches, key, kernel
        self.queues: dict[Queue, deque[T]] = {}
        self.waiting = _Waiting[T]()
        self.held = 0
        self.reached = 0

    def fill(self, count: int) -> None:
        while self.held < count and (launch := next(self.launches, None)) is not None:
            self.hold(launch)

    def hold(self, launch: T) -> None:
        self.queues.setdefault(launch.queue, deque()).append(launch)
        self.held += 1

    def oldest(self) -> Queue:
        waiting = ((queue[0].index, number) for number, queue in self.queues.items() if queue)
        return min(waiting)[1]

    def take(self, queue: Queue, number: int = 0) -> T:
        self.held -= 1
        launch = self.queues[queue][number]
        del self.queues[queue][number]
        self.reached = max(self.reached, launch.index)
        return launch

    def like_first(self, queue: Queue, count: int) -> list[tuple[int, T]]:
        # of the next launches of a queue those of the first one's kernel, and their places
        launches = list(islice(self.queues[queue], count))
        kernel = self.kernel(launches[0])
        return [(n, launch) for n, launch in enumerate(launches) if self.kernel(launch) == kernel]

    def rest(self) -> Iterator[T]:
        while self.held:
            yield self.take(self.oldest())
        yield from self.launches

    def keys(self, queue: Queue) -> list[str]:
        return [self.key(launch) for launch in self.queues.get(queue, ())]

    def count(self, key: str) -> int:
        return sum(self.key(launch) == key for queue in self.queues.values() for launch in queue)


class _Partners(Generic[T]):
    # which queue of run b does the work of a queue of run a

    def __init__(
        self, one: _Side[T], other: _Side[T], equal: Callable[[T, T], bool], known: Mapping[Queue, Queue]
    ) -> None:
        self._one, self._other, self._equal = one, other, equal
        self._known = dict(known)

    def of(self, queue: Queue, window: int) -> Queue:
        if queue not in self._known:
            self._other.fill(1)
            choice = self._free()
            if not any(all(self._alike(queue, one)) for one in choice):
                self._one.fill(window)
                self._other.fill(window)
                choice = self._free()
            choice.sort(key=lambda one: (*(-count for count in self._alike(queue, one)), one != queue))
            self._known[queue] = choice[0] if choice else queue
        return self._known[queue]

    def strangers(self) -> list[Queue]:
        taken = set(self._known.values())
        queues = self._other.queues.items()
        return [number for number, queue in queues if number not in taken for _ in queue]

    def agree(self, a: T, b: T) -> bool:
        return self._known.get(a.queue) == b.queue

    def _free(self) -> list[Queue]:
        taken = set(self._known.values())
        return [number for number, queue in self._other.queues.items() if queue and number not in taken]

    def _alike(self, queue: Queue, candidate: Queue) -> tuple[int, int]:
        # how many launches both begin with: of one kernel, and on equal bits
        a, b = self._one.queues.get(queue, ()), self._other.queues.get(candidate, ())
        pairs = list(islice(zip(a, b, strict=False), CONFIRM))
        same = [self._one.key(x) == self._other.key(y) for x, y in pairs]
        kernels = next((n for n, agrees in enumerate(same) if not agrees), len(same))
        return kernels, sum(self._equal(x, y) for x, y in pairs[:kernels])


def _equal_contents(a: Sequence[Hashable], b: Sequence[Hashable]) -> dict[int, int]:
    # partners of equal content: those in the same place first
    partner = {n: n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one == other}
    places: dict[Hashable, list[int]] = {}
    for m, content in enumerate(b):
        if m not in partner:
            places.setdefault(content, []).append(m)
    for n, content in enumerate(a):
        if n not in partner and places.get(content):
            partner[n] = places[content].pop(0)
    return partner


def way_back(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    """How many keys to leave out of each so that what follows agrees, the fewest; all if nothing does.

    Up to the end of either fewer keys may agree; elsewhere CONFIRM keys in a row must. Of two ways that
    leave out as many, the one after which more keys agree is taken.
    """
    found: dict[tuple[str, ...], int] = {}
    for start in range(len(b)):
        for length in range(2, CONFIRM + 1):  # shorter ones for the end of a
            found.setdefault(tuple(b[start : start + length]), start)
    ends = [tuple(b[-length:]) for length in range(2, min(CONFIRM, len(b) + 1))]
    if b:
        found.setdefault((b[-1],), len(b) - 1)
    best, agreeing = (len(a), len(b)), 0
    for start in range(len(a)):
        if start > sum(best):
            break
        after = found.get(tuple(a[start : start + CONFIRM]))
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
