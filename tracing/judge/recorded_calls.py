"""The calls of compiled graphs that one process made, with their launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tracing.model import GraphCall, KernelLaunch
from tracing.store import Run


class RecordedCall(NamedTuple):
    """One call of a compiled graph."""

    call: GraphCall
    launches: Sequence[KernelLaunch]  # that its thread made meanwhile
    complete: bool  # True: every launch of the call was recorded


def recorded_calls(run: Run, process: str, launches: Sequence[KernelLaunch]) -> list[RecordedCall]:
    """The calls of one process, in their order.

    launches -- of the process
    """
    calls = sorted(run.view(process, GraphCall, GraphCall), key=lambda one: one.index)
    return [_recorded(one, launches) for one in calls]


def _recorded(call: GraphCall, launches: Sequence[KernelLaunch]) -> RecordedCall:
    start, stop = call.launches
    during = [one for one in launches if start <= one.index < stop]
    own = [one for one in during if one.thread == call.thread]
    return RecordedCall(call, own, len(during) == stop - start)
