"""Records launches by generated code that were recorded before; see tracing/native/known_launches.h."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from tracing.launch import compiled_launches
from tracing.launch.call_sites import CallSites
from tracing.launch.hidden_computation import HiddenComputation
from tracing.model import Selection
from tracing.record.launches.adjacent_launches import LOST, following
from tracing.record.launches.cuda_graphs import RecordedCudaGraphs
from tracing.record.launches.digest_batches import DigestBatches
from tracing.record.launches.launch_digests import LaunchDigests
from tracing.record.launches.launch_template import DigestSlots, LaunchTemplates
from tracing.record.launches.timing import LaunchTimes
from tracing.record.recording import Recording
from tracing.upstream.inductor.code import GENERATED


class KnownLaunches(DigestBatches):
    """The parts of a recording that the class of the same name in tracing/native/known_launches.h uses."""

    generated: Collection[str] = GENERATED

    def __init__(
        self,
        recording: Recording,
        digests: LaunchDigests | None,
        times: LaunchTimes | None,
        selection: Selection,
        templates: LaunchTemplates,
        captured: RecordedCudaGraphs,
    ) -> None:
        flight, lines = recording.flight, recording.lines
        self.flight = flight if flight.partial else None  # `paused` in steps that are not written
        self.watched = flight.watch.launched if flight.watch is not None else None
        self.segments, self.open_graphs = recording.writer.segments, captured.open_graphs
        self.recording, self.writers = recording, recording.writers
        self.lock, self.thread = recording.lock, recording.thread
        self.sites: CallSites = recording.sites
        self.held, self.waiting = lines.held, lines.waiting
        self.times, self.failsafe = times, recording.failsafe
        self.json = msgspec.json.encode
        self.start, self.stop = selection.launches or (0, 1 << 62)  # numbers of launches that are recorded
        self._lines, self._digests, self._templates = lines, digests, templates
        self._selection = selection

    def flush(self) -> None:
        """Write the lines that are known."""
        with HiddenComputation():
            self._lines.flush()

    def following(self, slots: DigestSlots) -> int:
        """The line of the launch that directly follows the current one in generated code; 0: none does."""
        launch = following(slots.template)
        return 0 if launch is None else launch.line

    def lost(self) -> None:
        """An exception came between two launches that follow each other."""
        self.recording.catalogue.not_covered(LOST, "")

    def facts(self, slots: DigestSlots, stream: int) -> tuple[Any, ...] | None:
        """What is equal in all launches at these addresses; None: each may differ.

        The middle of its line; the position, storage and layout of what it reads and of what it writes;
        how it is digested; the index of its device; whether its kernel is selected; whether C++ can record
        it, which it cannot before Python has recorded one with digests.
        """
        template = slots.template
        if template.signature is None or template.device is None:
            return None
        if self.times is not None and compiled_launches.timers() is None:
            return None
        selected = self._selection.wants_kernel(template.site.name, template.phase)
        digests = self._digests.plan(slots, stream) if self._digests is not None else None
        complete = digests is not None or self._digests is None
        if selected and not complete and self._selection.launches is None:
            return None
        return *self._references(slots, stream), digests, template.device.index, selected, complete

    def refreshed(self, slots: DigestSlots, stream: int) -> tuple[bytes, list[Any], list[Any]]:
        """The first three of `facts` in a new segment of the run, into which the records are written."""
        self._templates.refresh(slots)
        return self._references(slots, stream)

    def _references(self, slots: DigestSlots, stream: int) -> tuple[bytes, list[Any], list[Any]]:
        template = slots.template
        line = {"signature": template.signature, "stream": stream, "storages": slots.storages}
        tensors = list(zip(template.positions, slots.storages, template.metas, strict=True))
        reads, writes = ([tensors[i] for i in side] for side in (template.reads, template.writes))
        return msgspec.json.encode(line)[1:-1], reads, writes
