"""Holds the shared parts of one recording: writer, catalogue, storages, call sites, thread."""

from __future__ import annotations

import itertools
import threading
from array import array
from dataclasses import dataclass, field

from tracing.launch.call_sites import CallSites
from tracing.launch.storages import Storages
from tracing.launch.threads import CurrentThread
from tracing.record.catalogue import Catalogue
from tracing.store import RunWriter


@dataclass(slots=True)
class Recording:
    """A recording of this process; `lock` is held while any part of it is used."""

    writer: RunWriter
    catalogue: Catalogue
    storages: Storages
    sites: CallSites
    thread: CurrentThread
    counters: array[int] = field(default_factory=lambda: array("q", [0, 0, 0]))  # C++ counts in it, too
    lock: threading.RLock = field(default_factory=threading.RLock)  # CUDA's backward has threads of its own

    @classmethod
    def of(cls, writer: RunWriter, *, segments: bool = False) -> Recording:
        """A new recording into `writer`.

        segments -- steps are written to segments, of which the oldest may be deleted
        """
        if segments:
            writer.begin_segments()
        thread = CurrentThread(itertools.count(), {})
        storages = Storages(writer)
        return cls(writer, Catalogue(writer, storages), storages, CallSites(writer), thread)

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
