"""Measures how long each launch takes, on the host and on a GPU.

On a GPU two events are recorded around each launch on its own stream. They are read when the device has
passed them; nothing waits for it before the end. If the device is idle, it passes the first event
immediately and waits for the launch: then the time includes launch overhead.
"""

from __future__ import annotations

from functools import cached_property

import torch

from tracing.launch import compiled_launches
from tracing.model import LaunchTime
from tracing.record.launches.timers import HOST, LaunchTimers, Timers
from tracing.store import RunWriter
from tracing.upstream.torch.cuda_graphs import is_capturing


class LaunchTimes:
    """The times of a run's launches; `start` and `close` are called under one lock, `stop` without."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer

    @cached_property
    def timers(self) -> LaunchTimers:
        """In C++ if launches are recorded by C++, which is known when the first one is made."""
        return (compiled_launches.timers() or Timers)()

    def start(self, launch: int, device: torch.device | None, stream: int) -> None:
        """A launch is made as soon as this returns.

        device -- the GPU, None on the host
        stream -- its handle there

        Costs two events a launch on a GPU, which are reused. A launch that is captured into a CUDA graph
        runs later: only its time on the host is taken.
        """
        if self.timers.due():
            self.flush()
        self.timers.start(launch, HOST if device is None or is_capturing() else device.index, stream)

    def stop(self, launch: int) -> None:
        """The launch has returned; a GPU may still execute it."""
        self.timers.stop(launch)

    def flush(self) -> None:
        """Write the times that are known."""
        if lines := self.timers.lines():
            self._writer.extend_encoded(LaunchTime, lines)

    def close(self) -> None:
        """Wait for the device, and write all remaining times."""
        self.timers.finish()
        self.flush()
