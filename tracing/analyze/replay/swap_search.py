"""Search for the kernels of run b that must be launched as in run a to give the results of run a.

Three steps: without replacements the case of b gives the results of b; with all replacements it gives those
of a; delta debugging then finds a minimal set of kernels in between. Each step yields events.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tracing.analyze.bisect import delta_debugging as delta
from tracing.analyze.replay import swap_plan
from tracing.analyze.replay.swap_cache import SwapCache
from tracing.analyze.replay.swap_plan import Candidate
from tracing.errors import Problem
from tracing.model import SwapResult

_NOT_DETERMINISTIC = (
    "its file has changed since, or it is not deterministic, as `tracing repeat CASE` tells; "
    "otherwise record it anew here"
)


@dataclass(frozen=True, slots=True)
class Running:
    """The case is about to be executed."""

    replaced: int | None  # kernels; None: the answer, a second time


@dataclass(frozen=True, slots=True)
class NothingReplaced:
    """The case of b gave the results of b."""

    differing: tuple[str, ...]  # from the reference
    seconds: float  # that one execution took


@dataclass(frozen=True, slots=True)
class NotReplaceable:
    """A kernel cannot be replaced, and is left out."""

    kernel: str
    why: str


@dataclass(frozen=True, slots=True)
class EverythingReplaced:
    """All kernels that can be replaced were."""

    kernels: int
    differing: tuple[str, ...]  # still; none: some of the kernels are to blame


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Delta debugging begins: a Tried follows for each choice."""

    noun: str  # "kernel" or "launch"
    count: int
    most: int  # executions of the case
    seconds: float  # that one execution takes


@dataclass(frozen=True, slots=True)
class Tried:
    """One subset of the kernels was replaced."""


@dataclass(frozen=True, slots=True)
class KernelsBlamed:
    """The answer: with these kernels replaced, two executions gave the reference results."""

    candidates: tuple[Candidate, ...]
    without: tuple[tuple[str, ...], ...]  # by candidate: the results that differ if all others are replaced
    among: int  # kernels


SwapEvent: TypeAlias = (
    Running | NothingReplaced | NotReplaceable | EverythingReplaced | Narrowing | Tried | KernelsBlamed
)


@dataclass(frozen=True, slots=True)
class Goal:
    """The reference that results are compared with."""

    wanted: Mapping[str, str]  # the identity of each result of a
    given: Mapping[str, str]  # of b
    close: bool  # agreement with eager is wanted, not the bits of a

    def differing(self, result: SwapResult) -> tuple[str, ...]:
        """The results that differ from the reference."""
        if result.outcome.status == "failed" or self.close:
            return () if result.outcome.status == "passed" else (result.outcome.detail,)
        names = {**result.results, **self.wanted}
        return tuple(f"{name} differs" for name in names if result.results.get(name) != self.wanted.get(name))


def search(
    goal: Goal,
    candidates: Sequence[Candidate],
    cache: SwapCache,
    launched: Mapping[str, int],
    *,
    each_launch: bool,
) -> Iterator[SwapEvent]:
    """Search for the kernels that are to blame; ends with ToBlame, or EverythingReplaced if none are.

    cache      -- executes the case with kernels replaced
    launched    -- by kernel, how many launches the latest execution made
    each_launch -- search the launches of these kernels, too

    Raises Problem if the case contradicts the recorded run or itself, or if no kernel can be replaced.
    """
    seconds = yield from _nothing(goal, cache)
    remaining = list(candidates)
    for one in candidates:
        seen = launched.get(one.kernel, 0)
        if seen != one.launches:
            why = f"b has {_launches(one.launches)} of it, and this execution made {seen}"
            yield NotReplaceable(one.kernel, why)
            remaining.remove(one)
    remaining = yield from _everything(goal, cache, remaining)
    if not remaining:
        return
    blamed = yield from _minimal(goal, cache, "kernel", remaining, seconds)
    launches = swap_plan.each_launch(blamed)
    if each_launch and len(launches) > len(blamed):
        blamed = yield from _minimal(goal, cache, "launch", launches, seconds)
    yield Running(None)
    if unlike := goal.differing(cache.of(blamed, anew=True)):
        differing = ", ".join(unlike)
        raise Problem(
            f"the case contradicts itself: with these replaced a second time, {differing}", _NOT_DETERMINISTIC
        )
    without = [goal.differing(cache.of([each for each in blamed if each is not one])) for one in blamed]
    yield KernelsBlamed(tuple(blamed), tuple(without), len(remaining))


def _nothing(goal: Goal, cache: SwapCache) -> Generator[SwapEvent, None, float]:
    yield Running(0)
    started = time.perf_counter()
    result = cache.of([], anew=True)
    seconds = time.perf_counter() - started
    if result.outcome.status == "failed":
        raise Problem(f"the case of b, executed here, fails: {result.outcome.detail}", _NOT_DETERMINISTIC)
    if result.results != goal.given:
        which = "those of a" if result.results == goal.wanted else "neither those of a nor those of b"
        raise Problem(f"the case of b, executed here, gives other results: {which}", _NOT_DETERMINISTIC)
    yield NothingReplaced(goal.differing(result), seconds)
    return seconds


def _everything(
    goal: Goal, cache: SwapCache, candidates: list[Candidate]
) -> Generator[SwapEvent, None, list[Candidate]]:
    # the replaceable ones; none if replacing them does not give the reference
    while candidates:
        yield Running(len(candidates))
        result = cache.of(candidates)
        if not result.refused:
            differing = goal.differing(result)
            yield EverythingReplaced(len(candidates), differing)
            return [] if differing else candidates
        yield NotReplaceable(result.refused, result.outcome.detail)
        candidates = [one for one in candidates if one.kernel != result.refused]
    raise Problem("cannot be decided, because no kernel could be replaced")


def _minimal(
    goal: Goal, cache: SwapCache, noun: str, items: Sequence[Candidate], seconds: float
) -> Generator[SwapEvent, None, list[Candidate]]:
    yield Narrowing(noun, len(items), delta.most(len(items)), seconds)
    choices = delta.choices(items)
    try:
        choice = next(choices)
        while True:
            equal = not goal.differing(cache.of(choice))
            yield Tried()
            choice = choices.send(equal)
    except StopIteration as end:
        smallest: list[Candidate] = end.value
        return smallest


def _launches(count: int) -> str:
    return f"{count} launch" if count == 1 else f"{count} launches"
