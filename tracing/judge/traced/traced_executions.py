"""Calls of the graphs that Dynamo traced, and their backwards, with the compiled graphs that they call."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tracing.model import GraphCall, TracedBackward, TracedCall
from tracing.store import Run


class TracedExecution(NamedTuple):
    """One call, or one backward of a call."""

    record: TracedCall | TracedBackward
    call: int  # `TracedCall.index` of the call, or of that whose backward it is
    inner: Sequence[GraphCall]  # calls of compiled graphs that are parts of it
    graph: int  # the compiled graph that has its results


def traced_executions(run: Run, process: str, calls: Sequence[GraphCall]) -> Iterator[TracedExecution]:
    """The executions of one process whose compiled graph was recorded, in their order.

    calls -- of the process, in their order
    """
    records: list[TracedCall | TracedBackward] = [*run.view(process, TracedCall, TracedCall)]
    records += run.view(process, TracedBackward, TracedBackward)
    indices = [one.index for one in calls]
    forwards: dict[int, int] = {}  # the compiled graph of each call
    for one in sorted(records, key=lambda record: record.index):
        first, stop = bisect_right(indices, one.index), bisect_left(indices, one.stop)
        inner = [call for call in calls[first:stop] if call.thread == one.thread]
        graph = inner[-1].graph if inner else None
        call = one.call if isinstance(one, TracedBackward) else one.index
        if isinstance(one, TracedBackward) and not (inner or one.given):
            graph = forwards.get(call)  # a backward that gives no gradient calls no graph
        if graph is not None:
            if isinstance(one, TracedCall):
                forwards[call] = graph
            yield TracedExecution(one, call, inner, graph)
