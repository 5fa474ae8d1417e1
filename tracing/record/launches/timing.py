"""Measures how long each launch takes, on the host and on a GPU.

On a GPU two events are recorded around each launch on its own stream. They are read when the device has
passed them; nothing waits for it before the end. If the device is idle, it passes the first event
immediately and waits for the launch: then the time includes launch overhead.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import msgspec
import torch

from tracing.launch import compiled_launches
from tracing.model import LaunchTime
from tracing.store import RunWriter
from tracing.upstream.torch.cuda_graphs import is_capturing
from tracing.upstream.torch.streams import stream_of

_LINES = 256  # launches whose times are written with one call
_FAILED = 1 << 16  # more waiting launches than this mean that the launch before them failed


class Timer(msgspec.Struct, gc=False):
    """A launch, from its first hook until its times are written."""

    launch: int
    clock: Any = None  # a Clock; None: nothing to measure on a device
    first: Any = None  # torch.cuda.Event
    last: Any = None
    began: int = 0  # ns
    wall: int | None = None  # ns; None: it has not returned

    def known(self) -> bool:
        """True if the launch has returned, and the device has passed its events."""
        return self.wall is not None and (self.clock is None or self.last.query())


class Clock:
    """The events of one stream, which are reused after they were read."""

    def __init__(self, device: torch.device, stream: int) -> None:
        self.handle, self.stream = stream, stream_of(stream, device)
        self.spare: list[Any] = []

    def event(self) -> Any:
        """An event that nothing waits for."""
        return self.spare.pop() if self.spare else torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


class LaunchTimes:
    """The times of a run's launches; `start` and `close` are called under one lock, `stop` without.

    The compiled form, LaunchClock in tracing/native/launch_times.h, uses the public attributes.
    """

    timer = Timer

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self.timers: deque[Timer] = deque()  # whose times are not written, in launch order
        self.due = _LINES  # as many timers are written together
        self._running: dict[int, Timer] = {}
        self._clocks: dict[tuple[torch.device, int], Clock] = {}

    def start(self, launch: int, device: torch.device | None, stream: int) -> None:
        """A launch is made as soon as this returns.

        device -- the GPU, None on the host
        stream -- its handle there

        Costs two events a launch on a GPU, which are reused. A launch that is captured into a CUDA graph
        runs later: only its time on the host is taken.
        """
        if device is not None and not is_capturing():
            self.start_on(launch, self.clock(device, stream))
            return
        if device is None:
            self._write_some()
        timer = self._begun(Timer(launch))
        timer.began = time.perf_counter_ns()

    def start_on(self, launch: int, clock: Clock) -> None:
        """As `start`, of a launch on the stream of a clock, which is not being captured."""
        self._write_some()
        timer = self._begun(Timer(launch, clock=clock, first=clock.event(), last=clock.event()))
        timer.first.record(clock.stream)
        timer.began = time.perf_counter_ns()

    def clock(self, device: torch.device, stream: int) -> Clock:
        """The clock of a stream."""
        clock = self._clocks.get((device, stream))
        if clock is None:
            clock = self._clocks[device, stream] = Clock(device, stream)
        return clock

    def stop(self, launch: int) -> None:
        """The launch has returned; a GPU may still execute it."""
        ended = time.perf_counter_ns()
        timer = self._running.pop(launch)
        if timer.clock is not None:
            timer.last.record(timer.clock.stream)
        timer.wall = ended - timer.began

    def flush(self) -> None:
        """Write the times that are known."""
        self._write()
        self.due = len(self.timers) + _LINES

    def _begun(self, timer: Timer) -> Timer:
        self._running[timer.launch] = timer
        self.timers.append(timer)
        return timer

    def _write_some(self) -> None:
        if len(self.timers) >= self.due:
            self.flush()

    def close(self) -> None:
        """Wait for the device, and write all remaining times."""
        for timer in self.timers:
            if timer.clock is not None and timer.wall is not None:
                timer.last.synchronize()
        self.timers = deque(timer for timer in self.timers if timer.wall is not None)
        self._write()

    def _write(self) -> None:
        known = compiled_launches.known_times() or self._known
        lines = known(self.timers)
        while len(self.timers) > _FAILED:
            self.timers.popleft()  # the launch failed
            lines += known(self.timers)
        if lines:
            self._writer.extend_encoded(LaunchTime, lines)

    def _known(self, timers: deque[Timer]) -> list[bytes]:
        # the lines of timers from the left, as long as their times are known; these are removed
        lines = []
        while timers and timers[0].known():
            lines.append(self._writer.encoded(_line(timers.popleft())))
        return lines


def _line(timer: Timer) -> LaunchTime:
    assert timer.wall is not None
    device_us = None
    if timer.clock is not None:
        device_us = round(timer.first.elapsed_time(timer.last) * 1e3, 3)
        timer.clock.spare += [timer.first, timer.last]
    return LaunchTime(timer.launch, timer.wall / 1e3, device_us)
