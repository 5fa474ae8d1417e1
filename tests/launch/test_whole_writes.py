"""Stores that are proven to overwrite a tensor, against the elements that they write; this needs no GPU."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.compiler import CompiledKernel

from tracing.launch.roles import declared
from tracing.launch.whole_writes import WholeWrites
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
            wide = value(
                f"tt.expand_dims {line} {{axis = {axis} : i32}}",
                f"tensor<{count}xi32> -> tensor<{ends[0]}i32>",
            )
            first = value(f"tt.splat {start}", f"i32 -> tensor<{ends[0]}i32>")
            both = value(f"arith.addi {first}, {wide}", f"tensor<{ends[0]}i32>")
            return value(f"tt.broadcast {both}", f"tensor<{ends[0]}i32> -> tensor<{shape}i32>")

        row, column = block(self.rows, 1, "%start"), block(self.columns, 0, "%j")
        masks = []
        for index, bound, number in ((row, "%n", self.row_bound), (column, "%m", self.column_bound)):
            if number is not None:
                limit = value(f"tt.splat {bound}", f"i32 -> tensor<{shape}i32>")
                masks.append(value(f"arith.cmpi {self._compared(index, limit)}"))
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
        return WholeWrites(self.ttir(), types).of(self.grid, [out, *bounds]) == {"out"}


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
    bounds = [
        None if bound is None else bound + choose.choice((-1, 1))
        for bound in (store.row_bound, store.column_bound)
    ]
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


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(one, marks=pytest.mark.soak) for one in range(4, 8))]
)
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


# ---- kernels ----


@pytest.fixture
def proven(compiled: Callable[..., CompiledKernel]) -> Callable[..., set[str]]:
    """Compiles a kernel; the values are those of a launch."""

    def proven(
        kernel: Any, grid: tuple[int, int, int] = (1, 1, 1), **values: TensorMeta | Scalar
    ) -> set[str]:
        types = {name: "*fp32" if isinstance(value, TensorMeta) else "i32" for name, value in values.items()}
        text = compiled(kernel, **types).asm["ttir"]
        roles, addresses = declared(text, types)
        args = [
            Argument(name, roles[name], value, addresses=name in addresses)
            if isinstance(value, TensorMeta)
            else Argument(name, value=value, addresses=name in addresses)
            for name, value in values.items()
        ]
        return WholeWrites(text, types).of(grid, args)

    return proven


@triton.jit
def double(x, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out + i, 2 * tl.load(x + i, i < n), i < n)


def test_a_masked_copy_overwrites_its_output(proven) -> None:
    assert proven(double, (2, 1, 1), x=tensor(100), out=tensor(100), n=100) == {"out"}


@pytest.mark.parametrize(
    ("programs", "n", "elements"), [(1, 100, 100), (2, 99, 100), (2, 100, 101), (2, 200, 129)]
)
def test_a_grid_a_bound_or_a_tensor_that_does_not_fit_is_not_proven(
    programs: int, n: int, elements: int, proven
) -> None:
    assert proven(double, (programs, 1, 1), x=tensor(100), out=tensor(elements), n=n) == set()


def test_a_tensor_with_gaps_or_wider_elements_is_not_proven(proven) -> None:
    assert proven(double, (2, 1, 1), x=tensor(100), out=tensor(10, 10, stride=(20, 1)), n=100) == set()
    assert proven(double, (2, 1, 1), x=tensor(100), out=tensor(100, dtype="float64"), n=100) == set()


def test_a_dense_tensor_of_any_dimension_order_is_proven(proven) -> None:
    assert proven(double, (2, 1, 1), x=tensor(100), out=tensor(5, 20, stride=(1, 5)), n=100) == {"out"}


def test_an_index_that_may_wrap_around_is_not_proven(proven) -> None:
    whole = {"x": tensor(1 << 31), "out": tensor(1 << 31)}

    assert proven(double, (1 << 25, 1, 1), **whole, n=(1 << 31) - 1) == set()
    assert proven(double, (1 << 24, 1, 1), x=tensor(1 << 30), out=tensor(1 << 30), n=1 << 30) == {"out"}


@triton.jit
def in_place(x, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(x + i, tl.load(x + i, i < n) + 1, i < n)


def test_a_tensor_that_is_read_too_is_not_proven(proven) -> None:
    assert proven(in_place, (2, 1, 1), x=tensor(100), n=100) == set()


@triton.jit
def atomic(x, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.atomic_xchg(out + i, tl.load(x + i, i < n), i < n)


@triton.jit
def conditional(x, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    if tl.load(x) > 0:
        tl.store(out + i, 1, i < n)


@triton.jit
def early_return(x, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    if tl.load(x) > 0:
        return
    tl.store(out + i, 1, i < n)


@triton.jit
def in_a_while_loop(x, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    k = tl.load(x)
    while k > 0:
        tl.store(out + i, 1, i < n)
        k -= 1


@triton.jit
def in_a_loop_of_loaded_length(x, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    for _ in range(tl.load(x).to(tl.int32)):
        tl.store(out + i, 1, i < n)


@triton.jit
def loaded_mask(x, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out + i, 1, (i < n) & (tl.load(x + i) > 0))


@triton.jit
def either_mask(x, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out + i, 1, (i < 50) | (i > n))


@triton.jit
def loaded_index(x, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out + tl.load(x + i).to(tl.int32), 1, i < n)


@triton.jit
def carried_pointer(x, out, n):
    for _ in range(0, n, 64):
        tl.store(out + tl.arange(0, 64), tl.load(x + tl.arange(0, 64)))
        out += 64


@triton.jit
def in_halves(x, out, n):
    i = tl.arange(0, 64)
    tl.store(out + i, 1)
    tl.store(out + 64 + i, 2)


@triton.jit
def with_an_exit(x, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    value = tl.load(x + i, i < n)
    value = tl.inline_asm_elementwise("exit; mov.b32 $0, $1;", "=r,r", [value], tl.float32, False, 1)
    tl.store(out + i, value, i < n)


@triton.jit(noinline=True)
def not_inlined(x):
    return x + 1


@triton.jit
def with_a_call(x, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out + i, not_inlined(tl.load(x)), i < n)


@triton.jit
def diagonal(x, out, n):
    i = tl.arange(0, 64)
    tl.store(out + 64 * i + i, 1)


NOT_PROVEN = [
    atomic,
    conditional,
    early_return,
    in_a_while_loop,
    in_a_loop_of_loaded_length,
    loaded_mask,
    either_mask,
    loaded_index,
    carried_pointer,
    in_halves,
    with_an_exit,
    with_a_call,
    diagonal,
]


@pytest.mark.parametrize("kernel", NOT_PROVEN, ids=lambda kernel: kernel.__name__)
def test_a_store_that_may_leave_elements_out_is_not_proven(kernel: Any, proven) -> None:
    assert proven(kernel, (2, 1, 1), x=tensor(128), out=tensor(128), n=128) == set()


@triton.jit
def transposed(x, out, n, m):
    row = tl.program_id(0) * 16 + tl.arange(0, 16)[:, None]
    column = tl.program_id(1) * 16 + tl.arange(0, 16)[None, :]
    mask = (row < n) & (column < m)
    tl.store(out + column * n + row, tl.load(x + row * m + column, mask), mask)


def test_a_transposed_copy_is_proven_and_one_with_another_stride_is_not(proven) -> None:
    x, out = tensor(33, 20), tensor(20, 33)

    assert proven(transposed, (3, 2, 1), x=x, out=out, n=33, m=20) == {"out"}
    assert proven(transposed, (2, 2, 1), x=x, out=out, n=33, m=20) == set()
    assert proven(transposed, (3, 2, 1), x=x, out=out, n=32, m=20) == set()


@triton.jit
def normalised(x, out, mean, n):
    row, total = tl.program_id(0), tl.zeros([64], tl.float32)
    for start in range(0, n, 64):
        i = start + tl.arange(0, 64)
        total += tl.load(x + row * n + i, i < n, 0)
    average = tl.sum(total) / n
    tl.store(mean + row, average)
    for start in range(0, n, 64):
        i = start + tl.arange(0, 64)
        tl.store(out + row * n + i, tl.load(x + row * n + i, i < n) - average, i < n)


def test_the_results_of_looped_reductions_are_proven(proven) -> None:
    x, mean = tensor(5, 200), tensor(5)

    assert proven(normalised, (5, 1, 1), x=x, out=tensor(5, 200), mean=mean, n=200) == {"out", "mean"}
    assert proven(normalised, (5, 1, 1), x=x, out=tensor(5, 201), mean=mean, n=200) == {"mean"}
    assert proven(normalised, (4, 1, 1), x=x, out=tensor(5, 200), mean=mean, n=200) == set()


def test_nothing_is_proven_of_a_launch_whose_pointers_are_not_all_tensors(
    compiled: Callable[..., CompiledKernel],
) -> None:
    types = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    text = compiled(double, **types).asm["ttir"]
    known = [Argument("out", "out", tensor(100)), Argument("n", value=100)]

    writes = WholeWrites(text, types)

    assert writes.of((2, 1, 1), [Argument("x", "in", tensor(100)), *known]) == {"out"}
    assert writes.of((2, 1, 1), [Argument("x", "in", value="a pointer"), *known]) == set()
