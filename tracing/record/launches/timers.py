"""Timers of the launches whose times are not written yet.

The compiled form is tracing/native/launch_times.h: the same methods, the same lines.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from typing import Any, Protocol

import msgspec
import torch

from tracing.model import LaunchTime
from tracing.upstream.torch.streams import stream_of

HOST = -1  # in place of a device: nothing is measured on one
_LINES = 256  # launches that are written together
_MOST = 1 << 16  # more launches after one that has not returned: it failed


class LaunchTimers(Protocol):
    """Measures launches; `start`, `lines` and `finish` are called under one lock, `stop` without."""

    def start(self, launch: int, device: int, stream: int, /) -> None:
        """A launch on a stream of the current device is made as soon as this returns.

        device -- its index, or HOST
        stream -- its handle there
        """

    def stop(self, launch: int, /) -> None:
        """The launch has returned; a GPU may still execute it."""

    def due(self) -> bool:
        """True if enough launches wait for being written together."""

    def lines(self) -> list[bytes]:
        """Remove launches in launch order as long as their times are known; return their lines."""

    def finish(self) -> None:
        """Wait for the device. The launches that have not returned failed: they get no line."""


class _Timer(msgspec.Struct, gc=False):
    launch: int
    device: int
    stream: Any = None  # torch.cuda.Stream; None: nothing to measure on a device
    first: Any = None  # torch.cuda.Event
    last: Any = None
    began: int = 0  # ns
    wall: int | None = None  # ns; None: it has not returned
    failed: bool = False


class Timers:
    """Measures launches in Python."""

    def __init__(self) -> None:
        self._timers: deque[_Timer] = deque()
        self._running: dict[int, _Timer] = {}
        self._spare: dict[int, list[Any]] = defaultdict(list)  # events that nothing waits for, by device
        self._streams: dict[tuple[int, int], Any] = {}
        self._due = _LINES

    def start(self, launch: int, device: int, stream: int, /) -> None:
        """A launch is made as soon as this returns."""
        timer = self._running[launch] = _Timer(launch, device)
        self._timers.append(timer)
        if device != HOST:
            timer.stream = self._stream(device, stream)
            timer.first, timer.last = self._event(device), self._event(device)
            timer.first.record(timer.stream)
        timer.began = time.perf_counter_ns()

    def stop(self, launch: int, /) -> None:
        """The launch has returned; a GPU may still execute it."""
        ended = time.perf_counter_ns()
        timer = self._running.pop(launch)
        if timer.stream is not None:
            timer.last.record(timer.stream)
        timer.wall = ended - timer.began

    def due(self) -> bool:
        """True if enough launches wait for being written together."""
        return len(self._timers) >= self._due

    def lines(self) -> list[bytes]:
        """Remove launches in launch order as long as their times are known; return their lines."""
        lines = []
        while self._timers:
            timer = self._timers[0]
            if not timer.failed and not (timer.wall is None and len(self._timers) > _MOST):
                if timer.wall is None or (timer.stream is not None and not timer.last.query()):
                    break
                lines.append(self._line(timer, timer.wall))
            self._timers.popleft()
        self._due = len(self._timers) + _LINES
        return lines

    def finish(self) -> None:
        """Wait for the device. The launches that have not returned failed: they get no line."""
        for timer in self._timers:
            timer.failed = timer.wall is None
            if not timer.failed and timer.stream is not None:
                timer.last.synchronize()

    def _line(self, timer: _Timer, wall: int) -> bytes:
        device_us = None
        if timer.stream is not None:
            device_us = round(timer.first.elapsed_time(timer.last) * 1e3, 3)
            self._spare[timer.device] += [timer.first, timer.last]
        return msgspec.json.encode(LaunchTime(timer.launch, wall / 1e3, device_us))

    def _event(self, device: int) -> Any:
        spare = self._spare[device]
        return spare.pop() if spare else torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]

    def _stream(self, device: int, handle: int) -> Any:
        stream = self._streams.get((device, handle))
        if stream is None:
            stream = self._streams[device, handle] = stream_of(handle, torch.device("cuda", device))
        return stream
