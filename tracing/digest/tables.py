"""Sizes, dtypes and layouts of tensors as the digest kernel reads them, built once per launch layout."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, count, groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from tracing.digest.columns import TILE_BYTES, block_tiles, blocks
from tracing.digest.kernel import ACROSS, AHEAD, ANY, SHORT, WHOLE
from tracing.digest.layouts import ROWS_ACROSS, DigestLayout, layout
from tracing.digest.spare_memory import spare_memory
from tracing.digest.statistics import KINDS
from tracing.upstream.torch.constructors import arange
from tracing.upstream.torch.dispatch_modes import dispatch_disabled

WIDTH = 8  # tensors a launch
TILES = 32  # tiles a program reads at most: one addition to global memory for 256 KiB
LARGE = 64 << 20  # bytes of a launch from which more programs read faster
# Of a launch, at least, if it has the tiles; measured, as the bytes and warps, on an H100: 132 processors.
PROGRAMS, LARGE_PROGRAMS = 256, 1024
TILES_ACROSS = 8  # of each row that is read across
WARPS = 4
LAYOUT_COLUMNS = 8


class Variant(NamedTuple):
    """The constants of a digest kernel; see there."""

    kind: int
    reading: int

    @property
    def unread(self) -> list[str]:
        """The kernel's arguments that it does not read: each column costs time at every launch."""
        strided = self.reading not in (SHORT, AHEAD)
        read = {"kinds": self.kind == ANY, "layouts": strided, "meanings": self.kind == 5}
        return [name for name in read if not read[name]]


class TableRow(NamedTuple):
    """One tensor of a table."""

    nbytes: int
    kind: int
    layout: DigestLayout
    meanings: int  # the address of what its bytes mean, or 0
    copied: bool = False  # a contiguous copy of the tensor is read

    @classmethod
    def of(cls, tensor: torch.Tensor) -> TableRow:
        """The row of a tensor."""
        kind, read = KINDS.get(tensor.dtype, 0), layout(tensor)
        meanings = _meanings(tensor.dtype, tensor.device).data_ptr() if kind == 5 else 0
        nbytes = tensor.numel() * tensor.element_size()
        return cls(nbytes, kind, read or DigestLayout(0), meanings, read is None)

    @property
    def variant(self) -> Variant:
        """The kernel that reads the tensor; tensors of one side of a launch are sorted by it."""
        if not self.layout.unit:
            return Variant(self.kind if self.kind == 5 else ANY, SHORT)
        across = WHOLE if self.layout.whole else ACROSS
        return Variant(self.kind, across if self.layout.across else self.layout.unit)


@dataclass(frozen=True, slots=True)
class Table:
    """The inputs of a digest launch for up to eight tensors, except for addresses."""

    rows: Sequence[TableRow]
    programs: int
    columns: tuple[Any, ...]  # arguments of the kernel, from `firsts` to `meanings`; None: not read
    variant: Variant  # of the kernel

    @property
    def count(self) -> int:
        """The number of tensors."""
        return len(self.rows)


def tables(rows: Iterable[TableRow]) -> list[Table]:
    """One table a launch for tensors of these sizes, dtypes and layouts."""
    made = []
    for kernel, group in groupby(rows, _variant):
        alike = list(group)
        made += [_table(kernel, alike[start : start + WIDTH]) for start in range(0, len(alike), WIDTH)]
    return made


_variant = attrgetter("variant")


def _table(variant: Variant, rows: Sequence[TableRow]) -> Table:
    total = sum(row.nbytes for row in rows)
    if variant.reading in (ACROSS, WHOLE):
        groups = [-(-row.nbytes // (row.layout.row_bytes * ROWS_ACROSS)) for row in rows]
        steps = [_parts(row.layout, n) for row, n in zip(rows, groups, strict=True)]
        programs = [n * parts for n, parts in zip(groups, steps, strict=True)]
    else:
        steps = [_step(row.nbytes, total) for row in rows]
        programs = [-(-row.nbytes // (TILE_BYTES * step)) for row, step in zip(rows, steps, strict=True)]
    *firsts, count = accumulate(programs, initial=0)
    if variant.kind == ANY and max(steps) > 1:
        variant = Variant(ANY, AHEAD)
    layouts = [(*row.layout.sizes, *row.layout.strides, row.layout.long) for row in rows]
    columns = {
        "firsts": _column(firsts, count),
        "sizes": _column(row.nbytes for row in rows),
        "blocks": _column((block_tiles(row.nbytes) for row in rows), 1),
        "kinds": _column(row.kind for row in rows),
        "steps": _column(steps, 1),
        "layouts": tuple(_column(of, 1) for of in zip(*layouts, strict=True)),
        "meanings": _column(row.meanings for row in rows),
    } | dict.fromkeys(variant.unread)
    return Table(rows, count, tuple(columns.values()), variant)


def _column(values: Iterable[int], nothing: int = 0) -> tuple[int, ...]:
    known = tuple(values)
    return known + (nothing,) * (WIDTH - len(known))


def _step(nbytes: int, total: int) -> int:
    # how many tiles of a tensor a program reads: a power of two, so that it divides the tiles of a range
    filling = total // (TILE_BYTES * (LARGE_PROGRAMS if total >= LARGE else PROGRAMS))
    return min(block_tiles(nbytes), TILES, 1 << max(0, filling.bit_length() - 1))


def _parts(layout: DigestLayout, groups: int) -> int:
    # how many programs share the tiles of the rows that are read together
    tiles = -(-layout.row_bytes // TILE_BYTES)
    if layout.whole:
        return tiles
    return -(-tiles // max(1, min(TILES_ACROSS, groups * tiles // LARGE_PROGRAMS)))


@functools.cache
def _meanings(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    # [256] the meaning of each byte
    def values(device: torch.device) -> torch.Tensor:
        return arange(256, dtype=torch.uint8, device="cpu").view(dtype).float().to(device)

    with dispatch_disabled():
        if device.type == "cpu":
            return values(device)
        return spare_memory(device).outside(values)  # type: ignore[no-any-return]


def load_meanings(device: torch.device) -> None:
    """Put the meanings of bytes on a device: nothing is copied there while a graph is captured."""
    for dtype, kind in KINDS.items():
        if kind == 5:
            _meanings(dtype, device)


def facts(rows: Iterable[TableRow]) -> npt.NDArray[np.int64]:
    """[n, 3] the input of `decode` for tensors: bytes, ranges, and whether the kernel tallies values."""
    lines = [(row.nbytes, blocks(row.nbytes), row.kind > 0) for row in rows]
    return np.array(lines, np.int64).reshape(-1, 3)


Call: TypeAlias = tuple[Table, tuple[int, ...]]  # a table, and the addresses of eight tensors


def calls(plan: Sequence[Table], addresses: Sequence[int]) -> list[Call]:
    """The launches that digest the tensors at these addresses, which must fit the layouts."""
    ends = accumulate(table.count for table in plan)
    return [
        (table, (*addresses[end - table.count : end], *[0] * (WIDTH - table.count)))
        for table, end in zip(plan, ends, strict=True)
    ]


Positions: TypeAlias = list[int]  # of the tensors of a call, among all that are digested


def separate(calls: Sequence[Call]) -> list[tuple[Call, Positions]]:
    """The calls, with the positions of their tensors."""
    positions = count()
    return [(call, list(islice(positions, call[0].count))) for call in calls]


def merged(several: Sequence[Call]) -> list[tuple[Call, Positions]]:
    """As few calls as there can be for the same tensors, with the positions of each."""
    tensors = [one for table, addresses in several for one in zip(table.rows, addresses, strict=False)]
    positions = sorted(range(len(tensors)), key=lambda i: tensors[i][0].variant)
    made = calls(tables([tensors[i][0] for i in positions]), [tensors[i][1] for i in positions])
    rest = iter(positions)
    return [(call, list(islice(rest, call[0].count))) for call in made]


def slots_of(positions: Positions, addresses: Sequence[int]) -> tuple[int, ...]:
    """The column `outs` of the kernel for the tensors of a call.

    addresses -- of the slots of all tensors
    """
    return _column(addresses[position] for position in positions)


def flat(tensors: Sequence[int], outs: Sequence[int], columns: Sequence[Any]) -> tuple[int, ...]:
    """The arguments of the kernel as CUDA's driver takes them."""
    read = [column for column in columns if column is not None]
    numbers = [part for column in read for part in (column if isinstance(column[0], tuple) else (column,))]
    return (*tensors, *outs, *chain.from_iterable(numbers))
