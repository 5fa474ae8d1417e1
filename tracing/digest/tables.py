"""Sizes, dtypes and layouts of tensors as the digest kernel reads them, built once per launch layout."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from tracing.digest.columns import TILE_BYTES, block_tiles, blocks
from tracing.digest.kernel import ACROSS, AHEAD, ANY, COLUMNS, SHORT
from tracing.digest.layouts import ROWS_ACROSS, DigestLayout, layout
from tracing.digest.spare_memory import OutOfSpareMemoryError, spare_memory
from tracing.digest.statistics import KINDS
from tracing.upstream.torch.cuda_graphs import is_capturing
from tracing.upstream.torch.dispatch_modes import dispatch_disabled

WIDTH = 8  # tensors a launch
TILES = 32  # tiles a program reads at most: one addition to global memory for 256 KiB
# Bytes of a launch from which many programs of few warps read faster; below, few of many warps start faster.
# Measured, as the programs of both, on an H200 with 132 processors.
LARGE = 64 << 20
PROGRAMS, LARGE_PROGRAMS = 256, 1024  # of a launch, at least, if it has the tiles
WARPS, LARGE_WARPS = 4, 2


class Variant(NamedTuple):
    """The constants of a digest kernel; see there."""

    kind: int
    reading: int


@dataclass(frozen=True, slots=True)
class Table:
    """The inputs of a digest launch for up to eight tensors, except for their addresses."""

    programs: int
    count: int
    padding: tuple[int, ...]  # addresses of the tensors that are not there
    rows: torch.Tensor  # [8, COLUMNS] int64 on the device, as the kernel takes them
    address: int  # of the rows
    variant: Variant  # of the kernel
    num_warps: int


def variant(tensor: torch.Tensor) -> Variant:
    """The kernel that reads a tensor; tensors of one side of a launch are sorted by it."""
    strides, kind = layout(tensor), KINDS.get(tensor.dtype, 0)
    if strides is None or not strides.unit:  # contiguous, or copied first
        return Variant(kind if kind == 5 else ANY, SHORT)
    return Variant(kind, ACROSS if strides.across else strides.unit)


def tables(tensors: Sequence[torch.Tensor]) -> list[Table]:
    """One table a launch for tensors of these sizes, dtypes and layouts, on their device.

    Cost: a copy to the device, once for each layout of a launch.
    """
    made = []
    for kind, group in groupby(tensors, variant):
        alike = list(group)
        made += [_table(kind, alike[start : start + WIDTH]) for start in range(0, len(alike), WIDTH)]
    return made


def _programs(nbytes: int, step: int, variant: Variant) -> int:
    return -(-nbytes // (TILE_BYTES * (ROWS_ACROSS if variant.reading == ACROSS else step)))


def _step(nbytes: int, all_bytes: int, programs: int) -> int:
    # how many tiles of a tensor a program reads: a power of two, so that it divides the tiles of a range
    filling = all_bytes // (TILE_BYTES * programs)
    return min(block_tiles(nbytes), TILES, 1 << max(0, filling.bit_length() - 1))


def _table(variant: Variant, tensors: Sequence[torch.Tensor]) -> Table:
    first = 0
    rows = []
    sizes = [tensor.numel() * tensor.element_size() for tensor in tensors]
    large = sum(sizes) >= LARGE
    programs = LARGE_PROGRAMS if large else PROGRAMS
    for tensor, nbytes in zip(tensors, sizes, strict=True):
        digest_layout, kind = layout(tensor) or DigestLayout(0), KINDS.get(tensor.dtype, 0)
        step = _step(nbytes, sum(sizes), programs)
        if variant.reading == ACROSS:
            step = digest_layout.tiles_of_a_row
        values = _values(tensor.dtype, tensor.device).data_ptr() if kind == 5 else 0
        shape = (*digest_layout.sizes, *digest_layout.strides, digest_layout.long)
        rows.append([first, nbytes, block_tiles(nbytes), kind, step, *shape, values])
        first += _programs(nbytes, step, variant)
    rest = WIDTH - len(tensors)
    nothing = [first, 0, 1, 0, 1, *[0] * (COLUMNS - 5)]
    device = tensors[0].device
    with dispatch_disabled():
        if device.type == "cpu":  # executed by the interpreter
            made = torch.tensor(rows + [nothing] * rest)
        else:
            made = spare_memory(device).table(rows + [nothing] * rest)
    num_warps = LARGE_WARPS if large and variant.reading != ACROSS else WARPS
    if variant.kind == ANY and any(row[4] > 1 for row in rows):
        variant = Variant(ANY, AHEAD)
    return Table(first, len(tensors), (0,) * rest, made, made.data_ptr(), variant, num_warps)


@functools.cache
def _values(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    # [256] the meaning of each byte
    def values() -> torch.Tensor:
        return torch.arange(256, dtype=torch.uint8, device="cpu").view(dtype).float().to(device)

    with dispatch_disabled():
        if device.type == "cpu":
            return values()
        if is_capturing():
            raise OutOfSpareMemoryError(f"the values of {dtype}")
        return spare_memory(device).outside(values)  # type: ignore[no-any-return]


def facts(tensors: Sequence[torch.Tensor]) -> npt.NDArray[np.int64]:
    """[n, 3] the input of `decode` for tensors: bytes, ranges, and whether the kernel tallies values."""
    sizes = [tensor.numel() * tensor.element_size() for tensor in tensors]
    tallied = [tensor.dtype in KINDS for tensor in tensors]
    columns = np.array([sizes, [blocks(n) for n in sizes], tallied], np.int64)
    return np.ascontiguousarray(columns.T)


Call: TypeAlias = tuple[Table, tuple[int, ...]]  # a table, and the kernel's arguments but for the slots


def calls(plan: Sequence[Table], addresses: Sequence[int]) -> list[Call]:
    """The launches that digest the tensors at these addresses, which must fit the layouts."""
    ends = accumulate(table.count for table in plan)
    return [
        (table, (*addresses[end - table.count : end], *table.padding, table.address))
        for table, end in zip(plan, ends, strict=True)
    ]
