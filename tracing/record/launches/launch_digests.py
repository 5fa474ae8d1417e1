"""Takes the digests before and after each launch: on the host immediately, on a GPU in stream order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from tracing.digest.captured import CapturedDigests
from tracing.digest.columns import Columns, DigestedLaunches
from tracing.digest.gpu import Batch, Sides, StreamDigests
from tracing.digest.host import digest
from tracing.digest.kernel import FIELDS
from tracing.digest.spare_memory import OutOfSpareMemoryError
from tracing.digest.streams import DigestStreams
from tracing.digest.tables import Call
from tracing.launch import hooks
from tracing.launch.coverage import WARM_UP
from tracing.launch.storages import TouchedMemory
from tracing.model import Digest, Reread, Values
from tracing.record.catalogue import Catalogue
from tracing.record.launches.adjacent_launches import LOST, following, follows
from tracing.record.launches.digested_tensors import DigestedTensors, copied_calls
from tracing.record.launches.launch_template import DigestSlots, LaunchTemplate, plain_tensor
from tracing.record.memory.exact_accesses import WatchedLaunch
from tracing.upstream.inductor.adjacent_launches import LaunchingLine
from tracing.upstream.torch.dispatch_modes import dispatch_disabled


@dataclass(slots=True)
class CapturedLaunch:
    """A launch that a CUDA graph repeats: a line of the run in each replay."""

    slots: DigestSlots
    stream: int
    site: int
    thread: int
    digested: bool = False


@dataclass(slots=True)
class LaunchInFlight:
    """A launch between its two hooks."""

    index: int
    template: LaunchTemplate
    values: Sequence[Any]
    memory: TouchedMemory
    slots: DigestSlots
    stream: int
    before: DigestedTensors
    writers: dict[int, str]
    found: Mapping[int, Digest] = field(default_factory=dict)  # before it, on the host
    left: Mapping[int, Digest] = field(default_factory=dict)  # by position, after it
    watched: WatchedLaunch | None = None  # executed by the interpreter
    rereads: Sequence[Reread] = ()  # of what it may have read
    small: Sequence[Values] = ()  # the elements of small tensors before it
    batch: Batch | None = None  # on a GPU
    slot: int = 0  # first of the launch in the batch
    captured: CapturedLaunch | None = None  # into a CUDA graph; then `index` counts the launches of the graph
    graph: CapturedDigests | None = None  # of that graph
    address: int = 0  # of its first slot

    def tensors(self, chosen: Iterable[int]) -> list[tuple[int, torch.Tensor]]:
        """Some of the template's tensors, with their argument positions."""
        positions = [self.template.positions[i] for i in chosen]
        return [(position, plain_tensor(self.values[position])) for position in positions]


class _Deferred(NamedTuple):
    """The digests after a launch that are taken together with those before the launch that follows."""

    launch: LaunchInFlight
    address: int  # of their first slot
    calls: Sequence[Call]
    line: LaunchingLine  # of the launch that follows


class LaunchDigests:
    """Takes the digests of launches; never waits for a device before its `streams` drain."""

    def __init__(self, catalogue: Catalogue, arrived: Callable[[DigestedLaunches], None]) -> None:
        """arrived -- receives the digests of launches, in any order"""
        self._catalogue = catalogue
        self._arrived = arrived
        self.streams = DigestStreams(arrived)
        self._deferred: dict[CapturedDigests, _Deferred] = {}

    def before(self, launch: LaunchInFlight) -> None:
        """Take the digests before a launch."""
        if launch.captured is not None:
            if launch.graph is not None:
                self._captured_before(launch, launch.graph)
        elif launch.template.device is None:
            launch.found = self._on_host(launch, launch.before)
        else:
            self._gpu_before(launch)

    def after(self, launch: LaunchInFlight) -> None:
        """Compute the digests after the launch."""
        if launch.captured is not None:
            if launch.graph is not None:
                self._captured_after(launch, launch.graph)
        elif launch.template.device is None:
            self._host_after(launch)
        else:
            self._gpu_after(launch)

    # ---- on the host

    def _host_after(self, launch: LaunchInFlight) -> None:
        launch.left = self._on_host(launch, launch.template.after)
        columns = Columns.of([*launch.found.values(), *launch.left.values()])
        self._arrived(DigestedLaunches.one(launch.index, columns, list(launch.found), list(launch.left)))

    def _on_host(self, launch: LaunchInFlight, side: DigestedTensors) -> dict[int, Digest]:
        digests = {}
        for position in side.positions:
            tensor = plain_tensor(launch.values[position])
            try:
                with dispatch_disabled():
                    digests[position] = digest(tensor)
            except (RuntimeError, NotImplementedError, TypeError) as error:
                reason = f"{type(tensor).__name__}: {str(error).splitlines()[0]}"
                self._catalogue.not_covered(f"the bits of a tensor argument ({reason})", "")
        return digests

    # ---- on a GPU

    def _gpu_before(self, launch: LaunchInFlight) -> None:
        template = launch.template
        stream = template.streams.get(launch.stream) or self._stream(launch)
        # the first launch of an autotuner may turn out to write less than is reserved
        launch.batch, launch.slot = stream.reserve(
            len(launch.before.positions) + len(template.after.positions)
        )
        ready = launch.slots.before or self._copied(launch, launch.before)
        stream.add(launch.batch, launch.slot, ready)

    def _gpu_after(self, launch: LaunchInFlight) -> None:
        before, after = launch.before, launch.template.after
        if launch.batch is None:
            self._arrived(DigestedLaunches.one(launch.index, Columns.of([])))
            return
        stream = launch.template.streams[launch.stream]
        first_after = launch.slot + len(before.positions)
        stream.add(launch.batch, first_after, launch.slots.after or self._copied(launch, after))
        stream.ended(launch.batch, launch.index, launch.slot, _sides(before, after))

    def plan(self, slots: DigestSlots, stream: int) -> tuple[Any, ...] | None:
        """What the compiled form needs for launches at these addresses; None: it cannot digest them."""
        template, digests = slots.template, slots.template.streams.get(stream)
        before, after = template.before, template.after
        copied = (before.positions and slots.before is None) or (after.positions and slots.after is None)
        if digests is None or copied or template.device is None or torch.version.hip is not None:
            return None
        return digests.plan(slots.before or (), slots.after or (), _sides(before, after))

    # ---- on a GPU, while a graph is captured

    def _captured_before(self, launch: LaunchInFlight, graph: CapturedDigests) -> None:
        before, after = launch.before, launch.template.after
        earlier = self._deferred.pop(graph, None)
        if earlier is not None and not follows(earlier.line):
            self._catalogue.not_covered(LOST, "")
            earlier = None
        try:
            launch.address, launch.slot = graph.reserve(len(before.positions) + len(after.positions))
            ready = launch.slots.before
            if earlier is not None and ready is not None and earlier.launch.stream == launch.stream:
                slots = [*_slots(earlier.address, earlier.calls), *_slots(launch.address, ready)]
                graph.add_merged(slots, launch.stream, [*earlier.calls, *ready])
                self._captured(earlier.launch, graph)
                return
            if earlier is not None:
                graph.add(earlier.address, earlier.launch.stream, earlier.calls)
                self._captured(earlier.launch, graph)
            graph.add(launch.address, launch.stream, ready or self._copied(launch, before))
        except OutOfSpareMemoryError as missing:
            self._missed(launch, missing)

    def _captured_after(self, launch: LaunchInFlight, graph: CapturedDigests) -> None:
        after, calls = launch.template.after, launch.slots.after
        address = launch.address + len(launch.before.positions) * FIELDS * 8
        line = None if calls is None else following(launch.template)
        if calls is not None and line is not None:
            self._deferred[graph] = _Deferred(launch, address, calls, line)
            return
        try:
            graph.add(address, launch.stream, calls or self._copied(launch, after))
        except OutOfSpareMemoryError as missing:
            self._missed(launch, missing)
            return
        self._captured(launch, graph)

    def _captured(self, launch: LaunchInFlight, graph: CapturedDigests) -> None:
        if launch.captured is not None:
            launch.captured.digested = True
        graph.ended(launch.index, launch.slot, _sides(launch.before, launch.template.after))

    def _missed(self, launch: LaunchInFlight, missing: OutOfSpareMemoryError) -> None:
        launch.graph = None
        what = f"digests of launches captured into a CUDA graph ({missing} was not there before the capture)"
        self._catalogue.not_covered(what, WARM_UP)

    def _copied(self, launch: LaunchInFlight, side: DigestedTensors) -> Sequence[Call]:
        assert launch.template.device is not None
        tensors = [plain_tensor(launch.values[position]) for position in side.positions]
        return copied_calls(side, tensors, launch.template.device, launch.stream)

    def _stream(self, launch: LaunchInFlight) -> StreamDigests:
        device = launch.template.device
        assert device is not None
        with hooks.hidden(), dispatch_disabled():
            stream = self.streams.on(device, launch.stream)
        launch.template.streams[launch.stream] = stream
        return stream


def _slots(address: int, calls: Sequence[Call]) -> list[int]:
    return [address + i * (FIELDS * 8) for i in range(sum(table.count for table, _ in calls))]


def _sides(before: DigestedTensors, after: DigestedTensors) -> Sides:
    return Sides(before.positions, after.positions, (before.facts, after.facts))
