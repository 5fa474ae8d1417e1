"""Holds the shared parts of one recording: writer, catalogue, storages, call sites, thread."""

from __future__ import annotations

import itertools
import threading
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
    launches: int = 0  # made so far
    recorded: int = 0  # of these
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
