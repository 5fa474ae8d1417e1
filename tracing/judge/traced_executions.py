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
    graph: int | None  # the compiled graph that has its results; None: it was not recorded


def traced_executions(run: Run, process: str, calls: Sequence[GraphCall]) -> Iterator[TracedExecution]:
    """The executions of one process, in their order.

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
        if isinstance(one, TracedCall):
            if graph is not None:
                forwards[one.index] = graph
            yield TracedExecution(one, one.index, inner, graph)
        else:
            if graph is None and not one.given:  # a backward that gives no gradient calls no graph
                graph = forwards.get(one.call)
            yield TracedExecution(one, one.call, inner, graph)
