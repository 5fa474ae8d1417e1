"""Digests on a GPU, in stream order, without synchronisation.

The sums of each tensor go to a slot of a buffer on the device; a full buffer is copied to pinned memory
in stream order, and read when the copy has ended.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import triton

from tracing.digest.columns import Columns, Digested
from tracing.digest.host import finish, rounded
from tracing.digest.kernel import FIELDS, digest_kernel
from tracing.digest.tables import Call
from tracing.upstream.torch.streams import current_handle, stream_of
from tracing.upstream.triton.compiled_kernel import load_binary
from tracing.upstream.triton.driver import current_target
from tracing.upstream.triton.jit import ASTSource

SLOTS = 4096  # results a buffer holds


def source(kind: int) -> ASTSource:
    """The digest kernel for fixed types: a JITFunction would specialise on values, and compile often."""
    types = {name: "i64" if name.startswith("p") else "*i64" for name in digest_kernel.arg_names}
    return ASTSource(digest_kernel, types | {"KIND": "constexpr"}, {"KIND": kind})


class CompiledDigest(NamedTuple):
    """A digest kernel on a device, and its launcher."""

    run: Any
    function: int
    packed_metadata: Any
    kernel: Any  # held: once nothing refers to it, its module is unloaded (triton 946e151bf, #9444, 3.8)


@functools.cache
def _compiled(device: int, kind: int, num_warps: int) -> CompiledDigest:
    with torch.cuda.device(device):
        target = current_target()
        kernel = triton.compile(source(kind), target=target, options={"num_warps": num_warps})
        load_binary(kernel)
    return CompiledDigest(kernel.run, kernel.function, kernel.packed_metadata, kernel)


@dataclass(frozen=True, slots=True)
class Rows:
    """The slots of one launch: first those of tensors digested before it, then those digested after it."""

    launch: int
    first: int
    before: Sequence[int]  # argument positions
    after: Sequence[int]
    facts: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # of both


class Batch:
    """Slots on one stream, and which launches fill them."""

    def __init__(self, slots: torch.Tensor) -> None:
        self.slots = slots  # [SLOTS, FIELDS] int64 on the device
        self.address = slots.data_ptr()
        self.count = 0  # slots taken
        self.running = 0  # launches that took slots and have not ended
        self.rows: list[Rows] = []  # of those that have
        self.host: torch.Tensor | None = None  # the slots in pinned memory
        self.copied: Any = None  # a torch.cuda.Event after the copy


class StreamDigests:
    """Digests of tensors on one stream; never waits for the device before `drain`.

    Memory: 0.4 MB on the device and as much pinned for each 4096 tensors in flight.
    """

    def __init__(self, device: torch.device, stream: int, arrived: Callable[[list[Digested]], None]) -> None:
        """stream  -- the handle of a CUDA or HIP stream of `device`
        arrived -- called with the digests of launches, batch by batch
        """
        self._device = device
        self._arrived = arrived
        self._handle = stream
        self.stream = stream_of(stream, device)
        self._batch = self._fresh()
        self._full: list[Batch] = []  # whose launches have not all ended
        self._leaving: list[Batch] = []  # being copied

    def reserve(self, count: int) -> tuple[Batch, int]:
        """Reserve `count` slots for a launch; returns their batch and the first slot."""
        if self._batch.count + count > SLOTS:
            self._next()
        batch = self._batch
        first = batch.count
        batch.count += count
        batch.running += 1
        return batch, first

    def add(self, batch: Batch, slot: int, calls: Sequence[Call]) -> None:
        """Launch the digests of tensors, which go to this slot and the following ones."""
        for table, arguments in calls:
            if table.programs:
                run, function, packed, _ = _compiled(self._device.index or 0, table.kind, table.num_warps)
                run(
                    table.programs, 1, 1, self._handle, function, packed, None, None, None,
                    *arguments, batch.address + slot * (FIELDS * 8), table.kind,
                )  # fmt: skip
            slot += table.count

    def ended(self, batch: Batch, rows: Rows) -> None:
        """A launch has ended, and its digests have been launched."""
        batch.rows.append(rows)
        batch.running -= 1
        if batch is not self._batch and not batch.running:
            self._full.remove(batch)
            self._copy(batch)

    def _next(self) -> None:
        # begin another batch; deliver what has arrived
        if self._batch.running:
            self._full.append(self._batch)
        else:
            self._copy(self._batch)
        self._batch = self._fresh()
        while self._leaving and self._leaving[0].copied.query():
            self._deliver(self._leaving.pop(0))

    def _copy(self, batch: Batch) -> None:
        # to the host, after the work of the stream
        with torch.cuda.stream(self.stream):
            batch.host = torch.empty(batch.slots.shape, dtype=torch.int64, pin_memory=True)
            batch.host.copy_(batch.slots, non_blocking=True)
            batch.copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            batch.copied.record(self.stream)
        self._leaving.append(batch)

    def drain(self) -> None:
        """Wait for everything that was launched, and deliver it."""
        for batch in (*self._full, self._batch):  # what has not ended by now has failed
            self._copy(batch)
        for batch in self._leaving:
            batch.copied.synchronize()
            self._deliver(batch)
        self._full.clear()
        self._leaving.clear()
        self._batch = self._fresh()

    @contextmanager
    def current(self) -> Iterator[None]:
        """While active, this is torch's current stream; does nothing if it already is."""
        if current_handle(self._device.index or 0) == self._handle:
            yield
        else:
            with torch.cuda.stream(self.stream):
                yield

    def _deliver(self, batch: Batch) -> None:
        if not batch.rows:
            return
        assert batch.host is not None
        counts = [len(rows.before) + len(rows.after) for rows in batch.rows]
        ends = list(accumulate(counts))
        slots = [
            i
            for rows, count in zip(batch.rows, counts, strict=True)
            for i in range(rows.first, rows.first + count)
        ]
        about = np.concatenate([side for rows in batch.rows for side in rows.facts])
        columns = decode(batch.host.numpy()[slots], about)
        self._arrived(
            [
                Digested(rows.launch, columns, end - count, rows.before, rows.after)
                for rows, count, end in zip(batch.rows, counts, ends, strict=True)
            ]
        )

    def _fresh(self) -> Batch:
        with torch.cuda.stream(self.stream):
            return Batch(torch.zeros((SLOTS, FIELDS), dtype=torch.int64, device=self._device))


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
