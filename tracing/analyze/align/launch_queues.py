"""Read the launches of two processes queue by queue, with look-ahead."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice, takewhile
from typing import Generic, NamedTuple

from tracing.analyze.align.launch_matching import Launches, Queue, T

NEAR = 64  # number of following launches that are compared one by one


class Waiting(Generic[T]):
    """Launches that the other run is expected to make later, by kernel."""

    def __init__(self) -> None:
        self._by_kernel: dict[str, list[T]] = {}

    def __bool__(self) -> bool:
        return any(self._by_kernel.values())

    def add(self, kernel: str, launch: T) -> None:
        """Add a launch that waits for its partner."""
        self._by_kernel.setdefault(kernel, []).append(launch)

    def of(self, kernel: str) -> list[T]:
        """The waiting launches of one kernel."""
        return self._by_kernel.get(kernel, [])

    def take(self, kernel: str, equal: Callable[[T], bool]) -> T | None:
        """Remove a launch of a kernel: an equal one, else the first; None if no launch of it waits."""
        held = self._by_kernel.get(kernel)
        if not held:
            return None
        return held.pop(next((n for n, one in enumerate(held) if equal(one)), 0))

    def take_at(self, kernel: str, position: int) -> T:
        """Remove one launch of a kernel by its position."""
        return self._by_kernel[kernel].pop(position)

    def before(self, index: int) -> list[T]:
        """Remove the launches before an index, in launch order."""
        if not self:
            return []
        earlier = [one for held in self._by_kernel.values() for one in held if one.index < index]
        for held in self._by_kernel.values():
            held[:] = [one for one in held if one.index >= index]
        return sorted(earlier, key=lambda one: one.index)


class QueueSide(Generic[T]):
    """The launches of one run, of which some are held in their queues."""

    def __init__(self, launches: Iterator[T], kernel: Callable[[T], str]) -> None:
        self.launches, self.kernel = launches, kernel
        self.queues: dict[Queue, deque[T]] = {}
        self.waiting = Waiting[T]()
        self.held = 0
        self.reached = 0

    def fill(self, count: int) -> None:
        """Hold this number of launches, or all remaining ones."""
        while self.held < count and (launch := next(self.launches, None)) is not None:
            self.hold(launch)

    def hold(self, launch: T) -> None:
        """Hold one more launch."""
        self.queues.setdefault(launch.queue, deque()).append(launch)
        self.held += 1

    def oldest(self) -> Queue:
        """The queue that holds the earliest launch."""
        heads = ((queue[0].index, number) for number, queue in self.queues.items() if queue)
        return min(heads)[1]

    def take(self, queue: Queue, position: int = 0) -> T:
        """Take a launch out of a queue."""
        self.held -= 1
        launch = self.queues[queue][position]
        del self.queues[queue][position]
        self.reached = max(self.reached, launch.index)
        return launch

    def like_first(self, queue: Queue) -> list[tuple[int, T]]:
        """The next NEAR launches of a queue with the kernel of its first one, each with its position."""
        launches = list(islice(self.queues[queue], NEAR))
        kernel = self.kernel(launches[0])
        return [(n, launch) for n, launch in enumerate(launches) if self.kernel(launch) == kernel]

    def rest(self) -> Iterator[T]:
        """The remaining launches, in launch order."""
        while self.held:
            yield self.take(self.oldest())
        yield from self.launches

    def kernels(self, queue: Queue) -> list[str]:
        """The names of the kernels that are held in a queue."""
        return [self.kernel(launch) for launch in self.queues.get(queue, ())]

    def count(self, kernel: str) -> int:
        """The number of launches of a kernel that are held back."""
        return sum(self.kernel(launch) == kernel for queue in self.queues.values() for launch in queue)


class _Score(NamedTuple):
    """How many of the next NEAR launches of two queues agree; a higher score is a better pair."""

    equal: int  # on equal bits, from the first ones on
    exact: int  # with equal arguments, in any order
    kernels: int  # of one kernel, in any order


class QueuePartners(Generic[T]):
    """Pairs the queues of two runs: partners begin with equal launches."""

    def __init__(
        self, a: QueueSide[T], b: QueueSide[T], ask: Launches[T], known: Mapping[Queue, Queue]
    ) -> None:
        self._a, self._b, self._ask = a, b, ask
        self._known = dict(known)

    def of(self, queue: Queue, window: int) -> Queue:
        """The partner of a queue of run a; looks up to `window` launches ahead if several fit."""
        if queue not in self._known:
            self._b.fill(1)
            begin = self._begin(queue, queue) if queue in self._free() else []
            if not begin or self._score(queue, queue)[0] < len(begin):
                self._a.fill(window)
                self._b.fill(window)
            self._choose(queue)
        return self._known[queue]

    def _choose(self, queue: Queue) -> None:
        # the best pairs first: a queue with a chance match must not take the partner of another
        mine = [one for one, held in self._a.queues.items() if held and one not in self._known]
        free = self._free()
        scores = {(a, b): self._score(a, b) for a in mine for b in free}
        chosen: dict[Queue, Queue] = {}
        # the sort is stable: equal scores stay in order
        for a, b in sorted(scores, key=scores.__getitem__, reverse=True):
            if scores[a, b].kernels and a not in chosen and b not in chosen.values():
                chosen[a] = b
        _uncross(chosen, mine, free, scores, self._repeat)
        self._known |= chosen
        free = self._free()
        self._known.setdefault(queue, free[0] if free and queue not in free else queue)

    def _repeat(self, pair: tuple[Queue, Queue], side: int) -> bool:
        # whether the launches of two queues of one run only repeat each other
        queues = (self._a, self._b)[side].queues
        launches = islice(zip(*(queues[number] for number in pair), strict=False), NEAR)
        return all(self._ask.repeats(one, other, side) for one, other in launches)

    def strangers(self) -> list[Queue]:
        """The queues of run b without a partner, each repeated for every launch that it holds."""
        taken = set(self._known.values())
        queues = self._b.queues.items()
        return [number for number, queue in queues if number not in taken for _ in queue]

    def agree(self, a: T, b: T) -> bool:
        """True if the queues of two launches are partners."""
        return self._known.get(a.queue) == b.queue

    def _free(self) -> list[Queue]:
        taken = set(self._known.values())
        return [number for number, queue in self._b.queues.items() if queue and number not in taken]

    def _begin(self, queue: Queue, candidate: Queue) -> list[tuple[T, T]]:
        a, b = self._a.queues.get(queue, ()), self._b.queues.get(candidate, ())
        return list(islice(zip(a, b, strict=False), NEAR))

    def _score(self, queue: Queue, candidate: Queue) -> _Score:
        alike = takewhile(
            lambda pair: self._a.kernel(pair[0]) == self._b.kernel(pair[1]), self._begin(queue, candidate)
        )
        a, b = (
            list(islice(side.queues.get(number, ()), NEAR))
            for side, number in ((self._a, queue), (self._b, candidate))
        )
        return _Score(
            equal=sum(self._ask.equal(x, y) for x, y in alike),
            exact=_common((self._ask.exact(x, 0) for x in a), (self._ask.exact(y, 1) for y in b)),
            kernels=_common(map(self._a.kernel, a), map(self._b.kernel, b)),
        )


def _common(a: Iterable[str], b: Iterable[str]) -> int:
    return (Counter(a) & Counter(b)).total()


def _uncross(
    chosen: dict[Queue, Queue],
    mine: Sequence[Queue],
    free: Sequence[Queue],
    scores: Mapping[tuple[Queue, Queue], _Score],
    repeat: Callable[[tuple[Queue, Queue], int], bool],
) -> None:
    # queues change their order only where more launches are alike in that order; of queues that repeat each
    # other, these may be alike by chance
    for one, other in combinations([queue for queue in mine if queue in chosen], 2):
        b, its = chosen[one], chosen[other]
        straight = scores[one, its], scores[other, b]
        crossed = free.index(its) < free.index(b) and all(score.kernels for score in straight)
        if crossed and (
            _total(straight) >= _total((scores[one, b], scores[other, its]))
            or (repeat((one, other), 0) and repeat((its, b), 1))
        ):
            chosen[one], chosen[other] = its, b


def _total(scores: Sequence[_Score]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*scores, strict=True)))
