"""Determines to which storages the operators of libraries wrote that generated code calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tracing.analyze.judge.launched_steps import LaunchedStep
from tracing.judge.steps.operator_writes import OperatorWrites
from tracing.store.graph_file import ScheduleStep


def library_storages(
    steps: Sequence[LaunchedStep], operators: OperatorWrites, called: Callable[[ScheduleStep], str]
) -> Mapping[str, int]:
    """The storage of each buffer that such an operator makes, by its name in the schedule.

    steps  -- of one call, in the order of the code
    called -- the operator of a step: "aten::mm"

    Between two launches, the run must have the same calls of these operators as the code; else the storages
    of the buffers that are made there are not known. Before the first launch, the program may call some, too.
    """
    return dict(_matched(steps, operators, called))


def _matched(
    steps: Sequence[LaunchedStep], operators: OperatorWrites, called: Callable[[ScheduleStep], str]
) -> Iterator[tuple[str, int]]:
    names = {called(one.step) for one in steps if one.step.kind == "library"}
    since: list[ScheduleStep] = []  # the last launch
    before = True  # the first launch of the call
    for made in steps:
        if made.step.kind == "library":
            since.append(made.step)
        if not made.launches:
            continue
        first = made.launches[0]
        calls = [one for one in operators.written_before(first.index, first.thread) if one[0] in names]
        calls = calls[max(0, len(calls) - len(since)) :] if before else calls
        if [name for name, _ in calls] == [*map(called, since)]:
            results = ((step.buffers, storage) for step, (_, storage) in zip(since, calls, strict=True))
            yield from ((buffers[0], storage) for buffers, storage in results if len(buffers) == 1)
        since, before = [], False
