"""The digest's GPU kernel computes the host's formula; Triton's interpreter executes the kernel."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
import torch
import triton
from triton.backends.compiler import GPUTarget

from tracing.digest import gpu as digest_gpu
from tracing.digest import kernel_launches
from tracing.digest import tables as digest_tables
from tracing.digest.columns import RANGES, TILE_BYTES
from tracing.digest.host import digest
from tracing.digest.kernel import ACROSS, AHEAD, ANY, FIELDS, SHORT, WHOLE
from tracing.digest.layouts import layout
from tracing.digest.tables import Call, Positions, TableRow, Variant
from tracing.model import Digest
from tracing.virtual_gpu import virtual_gpu

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
NAN, INF = float("nan"), float("inf")
RANDOM = torch.Generator().manual_seed(0)


def values(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=RANDOM).to(dtype)


def integers(*shape: int, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    return torch.randint(256, shape, generator=RANDOM).to(dtype)


def special(count: int, dtype: torch.dtype) -> torch.Tensor:
    tensor = values(count, dtype=dtype)
    tensor[::7], tensor[1::11], tensor[2::13], tensor[3::17] = NAN, -INF, -0.0, INF
    tensor[-1] = -0.0
    return tensor


def random_sizes(seed: int) -> list[torch.Tensor]:
    choose = random.Random(seed)
    sizes = [int(2 ** choose.uniform(0, 17)) for _ in range(choose.randint(1, digest_tables.WIDTH))]
    return [
        integers(n) if dtype is torch.uint8 else values(n // dtype.itemsize, dtype=dtype)
        for n in sizes
        for dtype in [choose.choice([*FLOATS, torch.uint8])]
    ]


GROUPS: dict[str, list[torch.Tensor]] = {
    "one tensor of every floating dtype": [values(1000, dtype=dtype) for dtype in FLOATS],
    "integers and booleans": [integers(777), integers(100, dtype=torch.int64), integers(9) > 99],
    "complex numbers": [torch.view_as_complex(values(601, 2, dtype=d)) for d in [FLOATS[0], FLOATS[3]]],
    "special complex numbers": [
        torch.view_as_complex(special(600, dtype).view(300, 2)) for dtype in [FLOATS[0], FLOATS[3]]
    ],
    "nothing": [torch.empty(0)],
    "nothing before, between and after": [
        torch.empty(0),
        values(3),
        torch.empty(0),
        values(4),
        torch.empty(0),
    ],
    "no dimension": [torch.tensor(-1.5), torch.tensor(-0.0), torch.tensor(7), torch.tensor(NAN).half()],
    "odd numbers of bytes": [integers(n) for n in (1, 2, 3, 5, 7, TILE_BYTES - 1, TILE_BYTES + 1, 4097)],
    "an odd number of halves": [values(n, dtype=dtype) for n in (1, 4095, 4097) for dtype in FLOATS[1:3]],
    "the edges of a tile": [integers(n * TILE_BYTES + d) for n in (1, 2) for d in (-4, 0, 4)],
    "the edges of a tile of doubles": [values(1024 + d, dtype=torch.float64) for d in (-1, 0, 1)],
    "eight tiles and nine": [integers(n * TILE_BYTES) for n in (RANGES, RANGES + 1)],
    "more tiles than ranges": [values(n * 2048 + 5) for n in (17, 33)],
    "every byte of every float8": [
        torch.arange(256, dtype=torch.uint8).repeat(20)[1:].view(dtype)
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
    ],
    "transposed": [values(70, 90, dtype=dtype).t() for dtype in FLOATS],
    "transposed, long rows": [values(8192, 16, dtype=dtype).t() for dtype in FLOATS],
    "transposed, rows of an odd number of tiles": [
        values(12288, 16, dtype=dtype).t() for dtype in FLOATS[:3]
    ],
    "transposed, columns cut out": [values(4096, 64, dtype=dtype)[:, 8:56].t() for dtype in FLOATS[:3]],
    "transposed, special values": [special(4096 * 16, dtype).view(4096, 16).t() for dtype in FLOATS[:3]],
    "transposed, 24 rows": [values(4096, 24, dtype=dtype).t() for dtype in FLOATS[1:3]],
    "transposed, 20 rows": [values(4096, 20, dtype=dtype).t() for dtype in FLOATS[1:3]],
    "transposed, rows of 1.5 tiles": [values(6144, 16, dtype=dtype).t() for dtype in FLOATS[1:3]],
    "transposed, tiles begin anywhere": [values(5002, 21, dtype=dtype)[:, 1:].t() for dtype in FLOATS[:3]],
    "transposed, special values anywhere": [
        special(5002 * 19, dtype).view(5002, 19).t() for dtype in FLOATS[:3]
    ],
    "channels last": [values(2, 47, 50, 20, dtype=dtype).permute(0, 3, 1, 2) for dtype in FLOATS[:2]],
    "transposed and expanded": [values(4096, 16).t().expand(2, 16, 4096)],
    "four dimensions out of order": [
        values(3, 5, 7, 64, dtype=dtype).permute(2, 0, 1, 3) for dtype in FLOATS
    ],
    "every other element": [values(5000, dtype=dtype)[1::2] for dtype in FLOATS],
    "rows cut out": [values(50, 96, dtype=dtype)[:, 8:72] for dtype in FLOATS],
    "expanded": [values(9, 1, 4, dtype=dtype).expand(9, 200, 4) for dtype in FLOATS],
    "long rows cut out": [values(5, 4301, dtype=dtype)[:, :4299] for dtype in FLOATS],
    "longer rows cut out": [values(5, 12301, dtype=dtype)[:, 1:12298] for dtype in FLOATS[:2]],
    "long rows of sixteen bytes": [values(5, 4608, dtype=dtype)[:, :4400] for dtype in FLOATS],
    "at an odd address": [values(3001, dtype=dtype)[1:] for dtype in FLOATS],
    "special values out of order": [special(6000, dtype).view(60, 100).t() for dtype in FLOATS],
    "bytes in rows": [integers(64, 64)[:, 4:24], integers(20, 30, 8).permute(1, 0, 2)],
    "special values": [special(600, dtype) for dtype in FLOATS],
    "special values in many tiles": [special(20000, dtype) for dtype in FLOATS],
    "nothing but special values": [torch.full((9000,), x, dtype=d) for x in (NAN, -0.0) for d in FLOATS],
    "subnormal and largest values": [
        torch.tensor([torch.finfo(d).smallest_normal / 2, torch.finfo(d).max, -0.0], dtype=d) for d in FLOATS
    ],
    **{f"random sizes {seed}": random_sizes(seed) for seed in range(8)},
}
MANY_TILES = (
    "more tiles than ranges",
    "transposed, columns cut out",
    "transposed, tiles begin anywhere",
    "long rows cut out",
    "every other element",
    "random sizes 0",
)


LIKE_ANOTHER = (  # they take longest, and the groups next to them execute the same branches
    "transposed, long rows",
    "transposed, rows of an odd number of tiles",
    "transposed, special values",
    "transposed, 24 rows",
    "transposed, 20 rows",
    "transposed, rows of 1.5 tiles",
    "transposed and expanded",
    "channels last",
    "long rows of sixteen bytes",
    "four dimensions out of order",
    "special values in many tiles",
    *(f"random sizes {seed}" for seed in range(2, 8)),
)


@pytest.fixture(autouse=True, scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GPUTarget]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        with virtual_gpu() as gpu:
            yield gpu


@functools.cache
def compiled(target: GPUTarget, made: Variant) -> Any:
    options = kernel_launches.options(made)
    return triton.compile(kernel_launches.source(made), target=target, options=options)


def digests(target: GPUTarget, tensors: list[Any]) -> list[Digest]:
    """The digests that the kernel computes for up to eight tensors."""
    return computed(target, tensors, digest_tables.separate(calls_of(tensors)))


def calls_of(tensors: Sequence[Any]) -> list[Call]:
    """The launches that digest these tensors."""
    rows = map(TableRow.of, tensors)
    return digest_tables.calls(digest_tables.tables(rows), [tensor.data_ptr() for tensor in tensors])


def computed(target: GPUTarget, tensors: list[Any], calls: list[tuple[Call, Positions]]) -> list[Digest]:
    out = torch.zeros((len(tensors), FIELDS), dtype=torch.int64)
    addresses = [out.data_ptr() + i * FIELDS * 8 for i in range(len(tensors))]
    for (table, padded), positions in calls:
        if table.programs:
            kernel, slots = compiled(target, table.variant), digest_tables.slots_of(positions, addresses)
            kernel[(table.programs, 1, 1)](padded, slots, *table.columns, *table.variant)
    return digest_gpu.decode(out.numpy(), digest_tables.facts(map(TableRow.of, tensors))).digests()


def rounded(digest: Digest) -> Digest:
    norm = digest.l1 and pytest.approx(digest.l1, rel=3e-5)  # summed in float32, tile by tile
    return msgspec.structs.replace(digest, l1=norm)


@pytest.mark.parametrize("group", ["long rows cut out", "long rows of sixteen bytes", "at an odd address"])
def test_long_rows_are_read_without_a_division_for_each_element(group: str) -> None:
    layouts = [layout(tensor) for tensor in GROUPS[group]]

    assert all(one is not None and one.long for one in layouts)


@pytest.mark.parametrize("group", [
    "transposed, rows of an odd number of tiles",
    "transposed, columns cut out",
    "transposed, special values",
    "transposed, 24 rows",
])  # fmt: skip
def test_aligned_rows_of_whole_tiles_are_read_across_them(group: str) -> None:
    assert all(TableRow.of(tensor).variant.reading == WHOLE for tensor in GROUPS[group])


@pytest.mark.parametrize(
    "tensor",
    [
        values(4096, 18).t(),  # its last rows are no 16 bytes
        values(3000, 16).t(),  # a tile begins within a row
        values(4096, 24, dtype=torch.bfloat16)[:, 1:17].t(),  # its address is no multiple of 16
        values(4096, 17)[:, :16].t(),  # the distance of its columns is no multiple of 16 bytes
        values(4096, 16).t().expand(2, 16, 4096),  # row 16 is row 0
        values(2, 4096, 16).transpose(1, 2),
    ],
    ids=["rows", "tiles", "address", "columns", "expanded", "two matrices"],
)
def test_tiles_of_other_long_rows_are_read_across_them(tensor: torch.Tensor) -> None:
    assert TableRow.of(tensor).variant.reading == ACROSS


@pytest.mark.parametrize(
    "tensor",
    [values(4096, 16, dtype=torch.float64).t(), values(2000, 16).t(), values(4097, 16).half().t()],
    ids=["doubles", "rows that are shorter than a tile", "rows of an odd number of halves"],
)
def test_other_transposed_matrices_are_not_read_across_their_rows(tensor: torch.Tensor) -> None:
    assert TableRow.of(tensor).variant.reading == min(4, tensor.element_size())


def test_rows_of_three_dimensions_are_not_long() -> None:
    cut = values(3, 5, 1500)[:, :4, :1400].expand(2, 3, 4, 1400)

    one = layout(cut)

    assert one is not None and not one.long


@pytest.mark.parametrize(
    "group", [pytest.param(one, marks=pytest.mark.soak) if one in LIKE_ANOTHER else one for one in GROUPS]
)
def test_the_kernel_computes_the_digest_of_the_host(target: GPUTarget, group: str) -> None:
    computed = digests(target, GROUPS[group])

    assert computed == [rounded(digest(tensor)) for tensor in GROUPS[group]]


@pytest.mark.parametrize(
    "group",
    [one if one in MANY_TILES else pytest.param(one, marks=pytest.mark.soak) for one in GROUPS],
)
def test_a_program_may_read_many_tiles(
    target: GPUTarget, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    monkeypatch.setattr(digest_tables, "PROGRAMS", 1)
    computed = digests(target, GROUPS[group])

    assert computed == [rounded(digest(tensor)) for tensor in GROUPS[group]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_an_l1_norm_beyond_float32_equals_the_hosts(target: GPUTarget, dtype: Any) -> None:
    tensor = torch.full((5000,), 3e38, dtype=dtype)
    computed = digests(target, [tensor])

    assert computed == [rounded(digest(tensor))]


def test_calls_are_merged(target: GPUTarget) -> None:
    a, b, turned, rest = values(5000), integers(9000), values(40, 30).t(), [values(7) for _ in range(7)]
    sides = [[a, turned, b], [b, a, a, a, *rest, turned]]
    calls = [call for side in sides for call in calls_of(side)]
    tensors = [tensor for side in sides for tensor in side]
    merged = digest_tables.merged(calls)

    assert computed(target, tensors, merged) == [rounded(digest(tensor)) for tensor in tensors]
    assert [table.count for (table, _), _ in merged] == [8, 5, 2]
    assert len(merged) < len(calls)


@pytest.mark.parametrize("count", [1, 8, 9, 20])
def test_tables_take_eight_tensors_each(count: int) -> None:
    tables = digest_tables.tables([TableRow.of(torch.zeros(5))] * count)

    assert [table.count for table in tables] == [8] * (count // 8) + [count % 8] * (count % 8 > 0)
    assert all(column is None or len(column) == 8 for table in tables for column in table.columns)


@pytest.mark.parametrize(
    "made",
    [
        Variant(ANY, SHORT),
        Variant(ANY, AHEAD),
        Variant(2, 2),
        Variant(1, 16),
        Variant(2, ACROSS),
        Variant(2, WHOLE),
    ],
    ids=str,
)
@pytest.mark.parametrize("stage, made_for", [
    pytest.param("cubin", GPUTarget("cuda", 80, 32), marks=pytest.mark.soak),
    ("cubin", GPUTarget("cuda", 90, 32)),
    pytest.param("hsaco", GPUTarget("hip", "gfx942", 64), marks=pytest.mark.soak),
], ids=str)  # fmt: skip
def test_the_kernel_compiles_for_a_gpu(stage: str, made_for: GPUTarget, made: Variant) -> None:
    assert compiled(made_for, made).asm[stage]


@pytest.mark.parametrize(
    "tensor",
    [
        integers(64, 64).t(),
        torch.randn(8, dtype=torch.complex64).conj(),
        values(2, 3, 4, 5, 6, 7).permute(5, 3, 1, 0, 2, 4),
        torch.zeros(16)[::2].expand(1 << 29, 8),
    ],
    ids=["transposed bytes", "conjugate", "six dimensions", "more words than 32 bits count"],
)
def test_a_tensor_that_no_layout_describes_must_be_copied(tensor: torch.Tensor) -> None:
    assert layout(tensor) is None
