"""Stores that are proven to overwrite a tensor, against the elements that they write; this needs no GPU."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from launch.test_access import compiled  # noqa: F401 a fixture
from triton.compiler import CompiledKernel

from tracing.launch.roles import declared
from tracing.launch.whole_writes import whole_writes
from tracing.model import Argument, Scalar, TensorMeta


def tensor(*shape: int, stride: tuple[int, ...] | None = None, dtype: str = "float32") -> TensorMeta:
    dense = tuple(int(np.prod(shape[n + 1 :])) for n in range(len(shape)))
    return TensorMeta(shape, stride or dense, dtype, "cuda:0", 0)


# ---- random stores, as TTIR ----


@dataclass(frozen=True)
class Store:
    """One store of a block [rows, columns] by each program, in a loop over columns."""

    rows: int
    columns: int
    grid: tuple[int, int, int]
    loop: tuple[int, int, int]  # start, stop, step
    row_bound: int | None  # of the mask
    column_bound: int | None
    radices: tuple[int, ...]  # of the row's digits, the last one left out
    strides: tuple[int, ...]  # of the digits, then of the column
    offset: int
    predicate: str

    def elements(self) -> set[int]:
        """The written elements, by brute force."""
        programs = np.arange(self.grid[0] * self.grid[1])[:, None]
        row = (programs * self.rows + np.arange(self.rows)).reshape(-1, 1)
        column = (np.arange(*self.loop)[:, None] + np.arange(self.columns)).reshape(1, -1)
        mask = np.full((row.size, column.size), True)
        for index, bound in ((row, self.row_bound), (column, self.column_bound)):
            mask &= True if bound is None else index < bound
        address, rest = self.offset + column * self.strides[-1], row
        for radix, stride in zip(self.radices, self.strides, strict=False):
            address, rest = address + rest % radix * stride, rest // radix
        address = address + rest * self.strides[-2]
        return set(np.broadcast_to(address, mask.shape)[mask].tolist())

    def ttir(self) -> str:
        """A kernel with this store; the bounds of its mask are its arguments."""
        shape = f"{self.rows}x{self.columns}x"
        lines: list[str] = []

        def value(operation: str, type_: str = f"tensor<{shape}i32>") -> str:
            lines.append(f"%v{len(lines)} = {operation} : {type_}")
            return f"%v{len(lines) - 1}"

        def constant(number: int) -> str:
            return value(f"arith.constant dense<{number}>")

        def block(count: int, axis: int, start: str) -> str:
            line = value(f"tt.make_range {{end = {count} : i32, start = 0 : i32}}", f"tensor<{count}xi32>")
            ends = (f"{count}x1x", f"1x{count}x") if axis else (f"1x{count}x", f"{count}x1x")
            wide = value(f"tt.expand_dims {line} {{axis = {axis} : i32}}", f"tensor<{count}xi32> -> tensor<{ends[0]}i32>")
            first = value(f"tt.splat {start}", f"i32 -> tensor<{ends[0]}i32>")
            both = value(f"arith.addi {first}, {wide}", f"tensor<{ends[0]}i32>")
            return value(f"tt.broadcast {both}", f"tensor<{ends[0]}i32> -> tensor<{shape}i32>")

        row, column = block(self.rows, 1, "%start"), block(self.columns, 0, "%j")
        masks = [
            value(f"arith.cmpi {self._compared(index, value(f'tt.splat {bound}', f'i32 -> tensor<{shape}i32>'))}")
            for index, bound, number in ((row, "%n", self.row_bound), (column, "%m", self.column_bound))
            if number is not None
        ]
        address, rest = value(f"arith.muli {column}, {constant(self.strides[-1])}"), row
        for radix, stride in zip(self.radices, self.strides, strict=False):
            digit = value(f"arith.remsi {rest}, {constant(radix)}")
            address = value(f"arith.addi {address}, {value(f'arith.muli {digit}, {constant(stride)}')}")
            rest = value(f"arith.divsi {rest}, {constant(radix)}")
        address = value(f"arith.addi {address}, {value(f'arith.muli {rest}, {constant(self.strides[-2])}')}")
        address = value(f"arith.addi {address}, {constant(self.offset)}")
        mask = ""
        for one in masks:
            mask = value(f"arith.andi {mask}, {one}", f"tensor<{shape}i1>") if mask else one
        pointers = f"tensor<{shape}!tt.ptr<f32>>"
        base = value("tt.splat %out", f"!tt.ptr<f32> -> {pointers}")
        where = value(f"tt.addptr {base}, {address}", f"{pointers}, tensor<{shape}i32>")
        ones = value("arith.constant dense<1.0>", f"tensor<{shape}f32>")
        lines.append(f"tt.store {where}, {ones}{f', {mask}' if mask else ''} : {pointers}")
        start, stop, step = self.loop
        body = "\n".join(lines)
        return f"""
        module {{ tt.func public @kernel(%out: !tt.ptr<f32>, %n: i32, %m: i32) {{
          %x = tt.get_program_id x : i32
          %y = tt.get_program_id y : i32
          %programs = tt.get_num_programs x : i32
          %rows = arith.constant {self.rows} : i32
          %above = arith.muli %y, %programs : i32
          %program = arith.addi %above, %x : i32
          %start = arith.muli %program, %rows : i32
          %lower = arith.constant {start} : i32
          %upper = arith.constant {stop} : i32
          %step = arith.constant {step} : i32
          scf.for %j = %lower to %upper step %step : i32 {{
            {body}
          }}
          tt.return
        }} }}"""

    def _compared(self, index: str, bound: str) -> str:
        a, b = (bound, index) if self.predicate in ("sgt", "ugt") else (index, bound)
        return f"{self.predicate}, {a}, {b}"

    def proven(self, elements: int) -> bool:
        """True if the store is proven to overwrite a tensor of so many elements."""
        bounds = [Argument("n", value=self.row_bound), Argument("m", value=self.column_bound)]
        out = Argument("out", "out", tensor(elements))
        types = {"out": "*fp32", "n": "i32", "m": "i32"}
        return whole_writes(self.ttir(), types, self.grid, [out, *bounds]) == {"out"}


def whole_store(choose: random.Random) -> tuple[Store, int]:
    """A store that overwrites a tensor, and the number of its elements."""
    rows, columns = choose.choice((1, 2, 4, 8)), choose.choice((1, 2, 4, 8))
    radices = tuple(choose.choice((2, 3, 5)) for _ in range(choose.choice((0, 0, 1, 2))))
    sizes = [*radices, choose.randint(1, 7), choose.randint(1, 20)]  # of the digits and the columns
    height, width = int(np.prod(sizes[:-1])), sizes[-1]
    order = choose.sample(range(len(sizes)), len(sizes))
    strides = [0] * len(sizes)
    count = 1
    for n in order:
        strides[n], count = count, count * sizes[n]
    programs = -(-height // rows)
    lines = choose.choice((1, 1, 2))
    store = Store(
        rows,
        columns,
        (-(-programs // lines), lines, 1),
        (0, width, columns),
        height if height % rows or lines > 1 or choose.random() < 0.5 else None,
        width if width % columns or choose.random() < 0.5 else None,
        radices,
        tuple(strides),
        0,
        choose.choice(("slt", "ult", "sgt", "ugt")),
    )
    return store, count


def changed(store: Store, choose: random.Random) -> Store:
    """The store with one number that is off."""
    x, y, z = store.grid
    start, stop, step = store.loop
    at = choose.randrange(len(store.strides))
    strides = [*store.strides]
    strides[at] += choose.choice((-1, 1, strides[at]))
    bounds = [None if bound is None else bound + choose.choice((-1, 1)) for bound in (store.row_bound, store.column_bound)]
    radices = tuple(radix + choose.choice((-1, 0, 1)) for radix in store.radices)
    return choose.choice([
        replace(store, grid=(max(1, x - 1), y, z)),
        replace(store, grid=(x + 1, y, z)),
        replace(store, loop=(start + 1, stop, step)),
        replace(store, loop=(start, stop - 1, step)),
        replace(store, loop=(start, stop, step + 1)),
        replace(store, loop=(start, stop, max(1, step - 1))),
        replace(store, loop=(stop, start, step)),
        replace(store, row_bound=bounds[0]),
        replace(store, column_bound=bounds[1]),
        replace(store, radices=radices),
        replace(store, strides=tuple(strides)),
        replace(store, offset=choose.choice((-1, 1))),
        replace(store, rows=2 * store.rows),
        replace(store, columns=2 * store.columns),
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_a_store_that_overwrites_a_tensor_is_proven(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(40):
        store, count = whole_store(choose)
        assert store.elements() == set(range(count))
        assert store.proven(count), store


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_proven_that_brute_force_refutes(seed: int) -> None:
    choose = random.Random(100 + seed)
    refuted, proven = 0, 0
    for _ in range(120):
        store, count = whole_store(choose)
        for _ in range(choose.choice((0, 1, 1, 2, 3))):
            store = changed(store, choose)
        count += choose.choice((0, 0, 0, 0, -1, 1))
        whole = store.elements() >= set(range(count))
        claimed = store.proven(count) if count > 0 and min(store.radices, default=1) > 0 else False
        assert whole or not claimed, (store, count)
        refuted, proven = refuted + (not whole), proven + claimed

    assert refuted > 20
    assert proven > 20
