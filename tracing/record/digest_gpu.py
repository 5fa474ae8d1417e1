"""Digests on a GPU, in the order of a stream, without ever waiting for it.

The sums of each tensor go to a slot of a buffer on the device; a full buffer is copied to pinned memory
behind the work of its stream, and read when that copy is seen to have ended.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
import triton
from triton.compiler import ASTSource

from tracing.model import Digest
from tracing.record.digest import LARGEST, TILE_BYTES, block_tiles, finish
from tracing.record.digest_kernel import FIELDS, KINDS, digest_kernel

WIDTH = 8  # tensors a launch
TILES = 32  # tiles a program reads at most: one addition to global memory for 256 KiB
PROGRAMS = 1024  # that read a tensor if it is large enough: an H100 runs about 8 on each of 132 processors
SLOTS = 4096  # results a buffer holds


@functools.cache
def _compiled(device: int) -> Any:
    # compiled ahead for fixed types: JITFunction would specialise on values and make a variant a launch
    signature = {name: "i64" if name.startswith("p") else "*i64" for name in digest_kernel.arg_names}
    target = triton.runtime.driver.active.get_current_target()
    kernel = triton.compile(ASTSource(digest_kernel, signature, {}), target=target, options={"num_warps": 2})
    kernel._init_handles()
    return kernel


@dataclass(frozen=True, slots=True)
class Table:
    """What a digest launch needs to know of up to eight tensors beside their addresses."""

    programs: int
    count: int
    padding: tuple[int, ...]  # addresses of the tensors that are not there
    rows: torch.Tensor  # [8, 5] int64 on the device, as the kernel takes them
    address: int  # of the rows
    nbytes: tuple[int, ...]
    counted: tuple[bool, ...]  # whether the dtype has a magnitude that is tallied


def tables(tensors: Sequence[torch.Tensor]) -> list[Table]:
    """One table a launch for tensors of these sizes and dtypes, on their device.

    Cost: a copy to the device, once for each way in which a kernel is launched.
    """
    return [_table(tensors[start : start + WIDTH]) for start in range(0, len(tensors), WIDTH)]


def _step(nbytes: int) -> int:
    # a power of two, so that it divides the tiles of a range; few for a tensor that would not fill the device
    filling = nbytes // (TILE_BYTES * PROGRAMS)
    return min(block_tiles(nbytes), TILES, 1 << max(0, filling.bit_length() - 1))


def _table(tensors: Sequence[torch.Tensor]) -> Table:
    sizes = tuple(tensor.numel() * tensor.element_size() for tensor in tensors)
    kinds = [KINDS.get(tensor.dtype, 0) for tensor in tensors]
    first = 0
    rows = []
    for nbytes, kind in zip(sizes, kinds, strict=True):
        block, step = block_tiles(nbytes), _step(nbytes)
        rows.append([first, nbytes, block, kind, step])
        first += -(-nbytes // (TILE_BYTES * step))
    rest = WIDTH - len(tensors)
    with torch._C._DisableTorchDispatch():
        made = torch.tensor(rows + [[first, 0, 1, 0, 1]] * rest, device=tensors[0].device)
    return Table(first, len(tensors), (0,) * rest, made, made.data_ptr(), sizes, tuple(k > 0 for k in kinds))


Call: TypeAlias = tuple[Table, tuple[int, ...]]  # a table, and the kernel's arguments but for the slots


def calls(plan: Sequence[Table], addresses: Sequence[int]) -> list[Call]:
    """What launches the digests of the tensors at these addresses: contiguous, at multiples of 16."""
    chunks = (addresses[start : start + WIDTH] for start in range(0, len(addresses), WIDTH))
    return [
        (table, (*chunk, *table.padding, table.address)) for table, chunk in zip(plan, chunks, strict=True)
    ]


class Batch:
    """Slots on one stream, and who waits for them."""

    def __init__(self, slots: torch.Tensor) -> None:
        self.slots = slots  # [SLOTS, FIELDS] int64 on the device
        self.address = slots.data_ptr()
        self.count = 0  # slots taken
        self.tables: list[Table] = []  # of the launches that took them
        self.waiting: list[tuple[Any, ...]] = []  # of whoever asked, for when the digests arrive
        self.host: torch.Tensor | None = None  # the slots in pinned memory
        self.copied: Any = None  # a torch.cuda.Event behind the copy


class StreamDigests:
    """Digests of tensors on one stream; never waits for the device before `drain`.

    Memory: 0.7 MB on the device and as much pinned for each 4096 tensors under way.
    """

    def __init__(
        self, device: torch.device, stream: int, arrived: Callable[[Batch, Sequence[Digest]], None]
    ) -> None:
        """stream  -- the handle of a CUDA or HIP stream of `device`
        arrived -- called with a batch and the digests of its slots
        """
        self._device = device
        self._arrived = arrived
        self._handle = stream
        self.stream = torch.cuda.ExternalStream(stream, device=device)  # type: ignore[no-untyped-call]
        with torch.cuda.device(device):
            kernel = _compiled(device.index or 0)
        self._run, self._function, self._packed = kernel.run, kernel.function, kernel.packed_metadata
        self._batch = self._fresh()
        self._leaving: list[Batch] = []

    def reserve(self, count: int) -> Batch:
        """The batch that takes the next `count` tensors."""
        if self._batch.count + count > SLOTS:
            self.send()
        return self._batch

    def add(self, batch: Batch, calls: Sequence[Call]) -> int:
        """Launch the digests of tensors; returns the first of their slots in the batch."""
        first = batch.count
        for table, arguments in calls:
            if table.programs:
                self._run(
                    table.programs, 1, 1, self._handle, self._function, self._packed, None, None, None,
                    *arguments, batch.address + batch.count * (FIELDS * 8),
                )  # fmt: skip
            batch.count += table.count
            batch.tables.append(table)
        return first

    def send(self) -> None:
        """Copy the batch to the host behind the work of its stream, begin another, deliver what arrived."""
        batch = self._batch
        if batch.count:
            with torch.cuda.stream(self.stream):
                batch.host = torch.empty(batch.slots.shape, dtype=torch.int64, pin_memory=True)
                batch.host.copy_(batch.slots, non_blocking=True)
                batch.copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
                batch.copied.record(self.stream)
            self._leaving.append(batch)
            self._batch = self._fresh()
        while self._leaving and self._leaving[0].copied.query():
            self._deliver(self._leaving.pop(0))

    def drain(self) -> None:
        """Wait for everything that was launched, and deliver it."""
        self.send()
        for batch in self._leaving:
            batch.copied.synchronize()
            self._deliver(batch)
        self._leaving.clear()

    @contextmanager
    def current(self) -> Iterator[None]:
        """While active, torch works on this stream; nothing to do where it does already."""
        if torch._C._cuda_getCurrentRawStream(self._device.index or 0) == self._handle:
            yield
        else:
            with torch.cuda.stream(self.stream):
                yield

    def _deliver(self, batch: Batch) -> None:
        assert batch.host is not None
        nbytes = [n for table in batch.tables for n in table.nbytes]
        counted = [tallied for table in batch.tables for tallied in table.counted]
        self._arrived(batch, decode(batch.host[: batch.count].numpy(), nbytes, counted))

    def _fresh(self) -> Batch:
        with torch.cuda.stream(self.stream):
            return Batch(torch.zeros((SLOTS, FIELDS), dtype=torch.int64, device=self._device))


def decode(slots: npt.NDArray[np.int64], nbytes: Sequence[int], counted: Sequence[bool]) -> list[Digest]:
    """Digests of n tensors.

    slots   -- [n, FIELDS] as the kernel leaves them
    nbytes  -- [n] the size of each tensor
    counted -- [n] whether its values were tallied
    """
    sums = slots.view(np.uint64)
    names = finish(sums[:, 5:], sums[:, 0], np.array(nbytes, np.int64))
    norms = np.ascontiguousarray(slots[:, 1]).view(np.float64).tolist()
    counts = slots[:, 2:5].tolist()
    return [
        Digest(name, tiles, nan, inf, zero, min(norm, LARGEST)) if tallied else Digest(name, tiles)
        for (name, tiles), (nan, inf, zero), norm, tallied in zip(names, counts, norms, counted, strict=True)
    ]
