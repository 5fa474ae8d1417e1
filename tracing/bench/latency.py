"""Measure repeated calls: with CUDA events on a GPU, with the clock on a CPU."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


def latencies(call: Callable[[], object], cuda: bool, runs: int, now: Callable[[int], None]) -> list[float]:
    """The milliseconds of each of `runs` calls.

    cuda -- the call computes on a GPU: events are recorded before and after each call, and read after the
            last one, so that calls are not synchronised
    now  -- called with the number of each call before it

    Source of the method on a GPU: `torch.cuda.Event`, as triton.testing.do_bench uses it.
    """
    return _on_gpu(call, runs, now) if cuda else [_on_cpu(call, now, i) for i in range(runs)]


def seconds(call: Callable[[], object], cuda: bool) -> float:
    """The seconds of one call, until its last kernel has ended."""
    _wait(cuda)
    started = time.perf_counter()
    call()
    _wait(cuda)
    return time.perf_counter() - started


def _on_cpu(call: Callable[[], object], now: Callable[[int], None], index: int) -> float:
    now(index)
    return seconds(call, cuda=False) * 1e3


def _on_gpu(call: Callable[[], object], runs: int, now: Callable[[int], None]) -> list[float]:
    events = [[_event(), _event()] for _ in range(runs)]
    _wait(cuda=True)
    for index, (start, end) in enumerate(events):
        now(index)
        start.record()  # type: ignore[no-untyped-call, unused-ignore]
        call()
        end.record()  # type: ignore[no-untyped-call, unused-ignore]
    _wait(cuda=True)
    return [float(start.elapsed_time(end)) for start, end in events]  # type: ignore[no-untyped-call, unused-ignore]


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call, unused-ignore]


def _wait(cuda: bool) -> None:
    if cuda:
        torch.cuda.synchronize()
