"""The steps that both of two processes have: only these are compared, by the number of the step."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import starmap
from typing import Literal

from tracing.analyze.runs.recorded_steps import RecordedSteps
from tracing.store import Run


class CommonSteps:
    """The steps of one process of each run."""

    def __init__(self, runs: tuple[Run, Run], processes: tuple[str, str]) -> None:
        a, b = (RecordedSteps.of(run, process) for run, process in zip(runs, processes, strict=True))
        self._sides = a, b
        self._known = bool(a.ends or b.ends)  # False: a program without steps
        self._common = self._recorded(a) & self._recorded(b)

    @property
    def all(self) -> bool:
        """True if no option left out or deleted a step of these processes."""
        return not any(list(one.missing()) for one in self._sides)

    def covers(self, side: Literal[0, 1], launch: int) -> bool:
        """True if both runs have, or would have, a launch that run a (side 0) or b has.

        Runs without a common step show no difference: where one ends, the other one is not known.
        """
        if self._known and not self._common:
            return False
        step = self._sides[side].step(launch)
        return all(one.has_launch(launch, step) for one in self._sides)

    @property
    def text(self) -> str:
        """The steps that both have."""
        if not self._known:
            first = max((one.first.launches for one in self._sides if one.first is not None), default=0)
            return f"launches from {first} on: the rest is not compared"
        return f"steps {_ranges(self._common)}: the rest is not compared" if self._common else "no step"

    def differences(self) -> Iterable[str]:
        """The steps that one run has and the other leaves out or has deleted, a sentence each."""
        a, b = self._sides
        for name, own, other in (("a", a, b), ("b", b, a)):
            lacking = {step for step in self._recorded(own) if not other.has(step)}
            if lacking:
                yield f"steps {_ranges(lacking)}: only {name} has them"

    @staticmethod
    def _recorded(one: RecordedSteps) -> set[int]:
        return {end.index for end in one.ends if one.has(end.index)}


def _ranges(steps: Iterable[int]) -> str:
    # "3", "0:9" as a slice, and "0, 8, … 96", separated by commas
    ordered = sorted(steps)
    parts: list[tuple[int, int, int]] = []  # first, last, distance
    for step in ordered:
        if parts:
            first, last, every = parts[-1]
            if every in (0, step - last):
                parts[-1] = first, step, step - last
                continue
        parts.append((step, step, 0))
    return ", ".join(starmap(_part, parts))


def _part(first: int, last: int, every: int) -> str:
    if first == last:
        return str(first)
    if every == 1:
        return f"{first}:{last + 1}"
    between = "" if last == first + every else f"{first + every}, " + "… " * (last > first + 2 * every)
    return f"{first}, {between}{last}"
