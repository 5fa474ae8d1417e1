"""Match the launches of a compiled graph's call with the kernel calls in its generated code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracing.model import KernelArg, KernelLaunch
from tracing.store.graph_file import Schedule, ScheduledCall, ScheduleStep


@dataclass(frozen=True, slots=True)
class LaunchedCall:
    """A call in generated code, and the launch that it made; None: it was not recorded, or not made."""

    call: ScheduledCall
    launch: KernelLaunch | None

    def arguments(self) -> Iterator[tuple[str, int, KernelArg]]:
        """Names in the code, positions, and arguments of the launch, of tensors."""
        if self.launch is not None:
            names = self.call.arguments
            for position, (name, argument) in enumerate(zip(names, self.launch.args, strict=False)):
                if argument.tensor is not None:
                    yield name, position, argument


@dataclass(frozen=True, slots=True)
class LaunchedStep:
    """A step of a schedule, with the launches that one call of the graph made for it."""

    step: ScheduleStep
    calls: tuple[LaunchedCall, ...]

    @property
    def launches(self) -> tuple[KernelLaunch, ...]:
        return tuple(one.launch for one in self.calls if one.launch is not None)


def made_steps(schedule: Schedule, launches: Sequence[KernelLaunch]) -> tuple[list[LaunchedStep], list[int]]:
    """The steps of one call of a graph, and the launches that belong to none, by number.

    launches -- that the process made while the graph ran, in order

    Generated code calls no kernel for a size of 0, and a selection may leave out launches: a call takes the
    next launch of its kernel's name, if there is one before a launch that a later call needs.
    """
    expected = [call for step in schedule.steps for call in step.calls]
    matched = _matched([one.kernel for one in expected], [one.kernel_name for one in launches])
    numbered = iter(range(len(expected)))
    steps = []
    for step in schedule.steps:
        made = []
        for call in step.calls:
            match = matched.get(next(numbered))
            made.append(LaunchedCall(call, None if match is None else launches[match]))
        steps.append(LaunchedStep(step, tuple(made)))
    taken = {*matched.values()}
    return steps, [one.index for i, one in enumerate(launches) if i not in taken]


def _matched(expected: Sequence[str], seen: Sequence[str]) -> Mapping[int, int]:
    # a longest common subsequence; nearly always both are equal
    if [*expected] == [*seen]:
        return {i: i for i in range(len(seen))}
    rows, columns = len(expected), len(seen)
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in reversed(range(rows)):
        for j in reversed(range(columns)):
            equal = best[i + 1][j + 1] + 1 if expected[i] == seen[j] else 0
            best[i][j] = max(equal, best[i + 1][j], best[i][j + 1])
    matched: dict[int, int] = {}
    i = j = 0
    while i < rows and j < columns:
        if expected[i] == seen[j] and best[i][j] == best[i + 1][j + 1] + 1:
            matched[i] = j
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return matched
