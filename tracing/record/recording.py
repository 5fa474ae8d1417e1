"""Holds the parts of one recording that its recorders of launches, operators and graphs share."""

from __future__ import annotations

import itertools
import threading
from array import array
from dataclasses import dataclass, field

from tracing.launch.call_sites import CallSites
from tracing.launch.storages import Storages
from tracing.launch.threads import CurrentThread
from tracing.model import StepSelection
from tracing.record.catalogue import Catalogue
from tracing.record.failsafe import Failsafe
from tracing.record.flight_recorder import FlightRecorder
from tracing.record.launches.launch_writer import LaunchWriter
from tracing.record.memory.last_writers import LastWriters
from tracing.store import RunWriter


@dataclass(slots=True)
class Recording:
    """A recording of this process; `lock` is held while any part of it is used."""

    writer: RunWriter
    catalogue: Catalogue
    storages: Storages
    sites: CallSites
    thread: CurrentThread
    failsafe: Failsafe
    flight: FlightRecorder  # which steps are written
    lines: LaunchWriter
    writers: LastWriters
    counters: array[int]  # launches, recorded launches, operators; C++ counts in it, too
    lock: threading.RLock = field(default_factory=threading.RLock)  # CUDA's backward has threads of its own

    @classmethod
    def of(cls, writer: RunWriter, steps: StepSelection, *, strict: bool) -> Recording:
        """A new recording into `writer`.

        steps  -- which steps are written, and which of them stay on disk
        strict -- errors of the recorder are raised in the program
        """
        counters = array("q", [0, 0, 0])
        failsafe = Failsafe(writer, lambda: counters[0], strict=strict)
        if steps.drops:
            writer.begin_segments()
        storages = Storages(writer)
        return cls(
            writer, Catalogue(writer, storages), storages, CallSites(writer),
            CurrentThread(itertools.count(), {}), failsafe, FlightRecorder(writer, steps),
            LaunchWriter(writer), LastWriters(), counters,
        )  # fmt: skip

    @property
    def launches(self) -> int:
        """Launches made so far."""
        return self.counters[0]

    @launches.setter
    def launches(self, count: int) -> None:
        self.counters[0] = count

    @property
    def recorded(self) -> int:
        """Those that were recorded."""
        return self.counters[1]

    @recorded.setter
    def recorded(self, count: int) -> None:
        self.counters[1] = count

    @property
    def operators(self) -> int:
        """Operators recorded so far."""
        return self.counters[2]

    @operators.setter
    def operators(self, count: int) -> None:
        self.counters[2] = count
