"""Digests on a GPU, in stream order, without synchronisation.

The sums of each tensor go to a slot of a buffer on the device; a full buffer is copied to pinned memory
in stream order, and read when the copy has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tracing.digest.columns import Columns, DigestedLaunches
from tracing.digest.host import finish, rounded
from tracing.digest.kernel import FIELDS
from tracing.digest.kernel_launches import DriverCall, driver_calls, launch_digests, merged_calls
from tracing.digest.spare_memory import spare_memory
from tracing.digest.tables import Call
from tracing.model import Digest
from tracing.native.extension import in_use
from tracing.upstream.torch.constructors import empty
from tracing.upstream.torch.streams import current_handle, stream_of

SLOTS = 4096  # results a buffer holds


class Sides(NamedTuple):
    """The tensors that are digested before a launch, and after it; equal in all launches of one layout."""

    before: Sequence[int]  # argument positions
    after: Sequence[int]
    facts: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # of both


class Rows:
    """Launches with digests: the slots of those before a launch, then of those after it.

    Three lists, not a list of tuples: Python's garbage collector would visit each tuple.
    """

    def __init__(self) -> None:
        self.launches: list[int] = []
        self.firsts: list[int] = []  # the first slot of each
        self.sides: list[Sides] = []

    def __len__(self) -> int:
        return len(self.launches)

    def add(self, launch: int, first: int, sides: Sides) -> None:
        """Add a launch, whose slots start at `first`."""
        self.launches.append(launch)
        self.firsts.append(first)
        self.sides.append(sides)


class Batch:
    """Slots on one stream, and which launches fill them."""

    def __init__(self, slots: torch.Tensor) -> None:
        self.slots = slots  # [SLOTS, FIELDS] int64 on the device
        self.address = slots.data_ptr()
        with torch.inference_mode(False):  # what is made in the program's could not be written outside of it
            pinned = slots.is_cuda
            self.host = empty(slots.shape, dtype=torch.int64, device="cpu", pin_memory=pinned)
        self.copied: Any = None  # a torch.cuda.Event after the copy of the slots to `host`
        self.clear()

    def clear(self) -> None:
        """Forget the launches; the slots become zero in the order of the current stream."""
        self.count = 0  # slots taken
        self.running = 0  # launches that took slots and have not ended
        self.rows = Rows()  # of those that have
        self.slots.zero_()


class StreamDigests:
    """Digests of tensors on one stream; never waits for the device before `drain`.

    Memory: 0.4 MB on the device and as much pinned for each 4096 tensors in flight.
    """

    def __init__(
        self, device: torch.device, stream: int, arrived: Callable[[DigestedLaunches], None]
    ) -> None:
        """stream  -- the handle of a CUDA or HIP stream of `device`
        arrived -- called with the digests of launches, batch by batch
        """
        self._device = device
        self._arrived = arrived
        self._handle = stream
        self.stream = stream_of(stream, device)
        self._full: list[Batch] = []  # whose launches have not all ended
        self._leaving: list[Batch] = []  # being copied
        self._spare: list[Batch] = []  # used repeatedly: new ones would move the program's tensors
        self.batch = self._fresh()

    def reserve(self, count: int) -> tuple[Batch, int]:
        """Reserve `count` slots for a launch; returns their batch and the first slot."""
        if self.batch.count + count > SLOTS:
            self.next_batch()
        batch = self.batch
        first = batch.count
        batch.count += count
        batch.running += 1
        return batch, first

    def add(self, batch: Batch, slot: int, calls: Sequence[Call]) -> None:
        """Launch the digests of tensors, which go to this slot and the following ones."""
        launch_digests(self._device.index or 0, self._handle, batch.address + slot * (FIELDS * 8), calls)

    def ended(self, batch: Batch, launch: int, first: int, sides: Sides) -> None:
        """A launch has ended, and its digests have been launched into slots from `first` on."""
        batch.rows.add(launch, first, sides)
        batch.running -= 1
        if batch is not self.batch and not batch.running:
            self.leave(batch)

    def leave(self, batch: Batch) -> None:
        """All launches of a full batch have ended."""
        self._full.remove(batch)
        self._copy(batch)

    def plan(self, before: Sequence[Call], after: Sequence[Call], sides: Sides) -> tuple[Any, ...]:
        """What the compiled form needs for these digests; see LaunchDigests in tracing/native/digests.h."""
        made = [driver_calls(self._device.index or 0, calls) for calls in (before, after)]
        return self, self._handle, SLOTS, FIELDS * 8, *made, sides, before, after

    def merged(self, after: Sequence[Call], before: Sequence[Call]) -> list[DriverCall]:
        """The digests after a launch and those before the next one together, for the compiled form."""
        return merged_calls(self._device.index or 0, [*after, *before])

    def next_batch(self) -> None:
        """Begin another batch; deliver what has arrived."""
        if self.batch.running:
            self._full.append(self.batch)
        else:
            self._copy(self.batch)
        self.batch = self._fresh()
        self._deliver_arrived()

    def _copy(self, batch: Batch) -> None:
        # to the host, after the work of the stream
        with torch.cuda.stream(self.stream):
            batch.host.copy_(batch.slots, non_blocking=True)
            batch.copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            batch.copied.record(self.stream)
        self._leaving.append(batch)

    def hand_over(self, *, wait: bool) -> None:
        """Begin to copy the digests that were launched so far, and deliver those that have arrived.

        wait -- wait for the copies that began before this call
        """
        for batch in self._leaving if wait else ():
            batch.copied.synchronize()
        if self.batch.count:
            self.next_batch()
        self._deliver_arrived()

    def _deliver_arrived(self) -> None:
        while self._leaving and self._leaving[0].copied.query():
            self._deliver(self._leaving.pop(0))

    def drain(self) -> None:
        """Wait for everything that was launched, and deliver it."""
        for batch in (*self._full, self.batch):  # what has not ended by now has failed
            self._copy(batch)
        for batch in self._leaving:
            batch.copied.synchronize()
            self._deliver(batch)
        for batches in (self._full, self._leaving, self._spare):  # what failed may still write to one
            batches.clear()
        self.batch = self._fresh()

    def _deliver(self, batch: Batch) -> None:
        if batch.rows:
            self._arrived(digested(batch.rows, batch.host.numpy(), batch.rows.launches))
        self._spare.append(batch)

    def _fresh(self) -> Batch:
        with torch.cuda.stream(self.stream):
            if self._spare:
                batch = self._spare.pop()
                batch.clear()
                return batch

            # not of the blocks that the program freed on its stream: its tensors would move
            memory = spare_memory(self._device)
            return Batch(
                memory.outside(lambda device: empty((SLOTS, FIELDS), dtype=torch.int64, device=device))
            )


def digested(rows: Rows, slots: npt.NDArray[np.int64], launches: Sequence[int | None]) -> DigestedLaunches:
    """The digests of some launches.

    rows     -- not empty
    slots    -- [n, FIELDS] as written by the kernel
    launches -- the number of each launch; None: its digests are not wanted
    """
    if (native := in_use("launches")) is not None:
        *columns, firsts = native.decoded(slots, rows.firsts, rows.sides)
        return DigestedLaunches(launches, Columns(*columns), firsts, rows.sides)
    tables, starts, sizes = _facts(rows.sides)
    counts = np.array(sizes)
    ends = counts.cumsum()
    digest = np.arange(ends[-1])
    chosen = digest + np.repeat(rows.firsts - ends + counts, counts)
    about = tables[digest + np.repeat(starts - ends + counts, counts)]
    return DigestedLaunches(launches, decode(slots[chosen], about), (ends - counts).tolist(), rows.sides)


def digest_objects(columns: Columns) -> list[Digest]:
    """Columns that `digested` returned, as objects: `Columns.digests`, compiled if it can be."""
    if (native := in_use("launches")) is None:
        return columns.digests()
    made: list[Digest] = native.digests(
        Digest, columns.bits, columns.tiles, columns.ranges, columns.l1, columns.special
    )
    return made


def _facts(sides: Sequence[Sides]) -> tuple[npt.NDArray[np.int64], list[int], list[int]]:
    # the facts of all different sides as one table; the row where those of each begin, and how many they are
    different = {id(one): one for one in sides}
    sizes = {key: len(one.before) + len(one.after) for key, one in different.items()}
    starts = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))
    table = np.concatenate([facts for one in different.values() for facts in one.facts])
    return table, [starts[id(one)] for one in sides], [sizes[id(one)] for one in sides]


@contextmanager
def on_stream(device: torch.device, handle: int) -> Iterator[None]:
    """While active, the stream with this handle is torch's current one; does nothing if it already is."""
    if current_handle(device.index or 0) == handle:
        yield
    else:
        with torch.cuda.stream(stream_of(handle, device)):
            yield


def decode(slots: npt.NDArray[np.int64], about: npt.NDArray[np.int64]) -> Columns:
    """Digests of n tensors.

    slots -- [n, FIELDS] as written by the kernel
    about -- [n, 3] their `facts`
    """
    nbytes, ranges, tallied = about.T
    sums = slots.view(np.uint64)
    bits, tiles = finish(sums[:, 5:], sums[:, 0], nbytes, ranges)
    norms = np.ascontiguousarray(slots[:, 1]).view(np.float64)
    l1 = np.where(tallied, rounded(norms), np.nan)
    special = {i: tuple(slots[i, 2:5].tolist()) for i in np.flatnonzero(slots[:, 2:5].any(axis=1)).tolist()}
    return Columns(bits, tiles, ranges.tolist(), l1.tolist(), special)
