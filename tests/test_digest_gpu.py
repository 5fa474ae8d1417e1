"""The digest's GPU kernel computes what the formula of the host does: executed by Triton's interpreter."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from triton.backends.compiler import GPUTarget  # noqa: E402  (torch and Triton may be absent)
from triton.compiler import ASTSource  # noqa: E402

from tracing.model import Digest  # noqa: E402
from tracing.record import digest_gpu  # noqa: E402
from tracing.record.digest import RANGES, TILE_BYTES, digest  # noqa: E402

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
    sizes = [int(2 ** choose.uniform(0, 17)) for _ in range(choose.randint(1, digest_gpu.WIDTH))]
    return [
        integers(n) if dtype is torch.uint8 else values(n // dtype.itemsize, dtype=dtype)
        for n in sizes
        for dtype in [choose.choice([*FLOATS, torch.uint8])]
    ]


GROUPS: dict[str, list[torch.Tensor]] = {
    "one tensor of every floating dtype": [values(1000, dtype=dtype) for dtype in FLOATS],
    "integers and booleans": [integers(777), integers(100, dtype=torch.int64), integers(9) > 99],
    "complex numbers": [values(50, dtype=torch.complex64)],
    "nothing": [torch.empty(0)],
    "nothing before, between and behind": [torch.empty(0), values(3), torch.empty(0), values(4), torch.empty(0)],
    "no dimension": [torch.tensor(-1.5), torch.tensor(-0.0), torch.tensor(7), torch.tensor(NAN).half()],
    "odd numbers of bytes": [integers(n) for n in (1, 2, 3, 5, 7, TILE_BYTES - 1, TILE_BYTES + 1, 4097)],
    "an odd number of halves": [values(n, dtype=dtype) for n in (1, 4095, 4097) for dtype in FLOATS[1:3]],
    "the edges of a tile": [integers(n * TILE_BYTES + d) for n in (1, 2) for d in (-4, 0, 4)],
    "the edges of a tile of doubles": [values(1024 + d, dtype=torch.float64) for d in (-1, 0, 1)],
    "eight tiles and nine": [integers(n * TILE_BYTES) for n in (RANGES, RANGES + 1)],
    "more tiles than ranges": [values(n * 2048 + 5) for n in (17, 33)],
    "special values": [special(600, dtype) for dtype in FLOATS],
    "special values in many tiles": [special(30000, dtype) for dtype in FLOATS],
    "nothing but special values": [torch.full((9000,), x, dtype=d) for x in (NAN, -0.0) for d in FLOATS],
    "subnormal and largest values": [
        torch.tensor([torch.finfo(d).smallest_normal / 2, torch.finfo(d).max, -0.0], dtype=d) for d in FLOATS
    ],
    **{f"random sizes {seed}": random_sizes(seed) for seed in range(12)},
}

SCRIPT = """
import sys
import msgspec, torch
from tracing.record import digest_gpu

def digests(tensors):
    (table,) = digest_gpu.tables(tensors)
    out = torch.zeros((digest_gpu.WIDTH, digest_gpu.FIELDS), dtype=torch.int64)
    addresses = [tensor.data_ptr() for tensor in tensors]
    assert not any(address & 15 for address in addresses)
    if table.programs:
        digest_gpu.digest_kernel[(table.programs,)](*addresses, *table.padding, table.rows, out)
    return digest_gpu.decode(out.numpy()[: len(tensors)], table.nbytes, table.counted)

digest_gpu.PROGRAMS = int(sys.argv[2])
found = {name: digests(tensors) for name, tensors in torch.load(sys.argv[1]).items()}
sys.stdout.buffer.write(msgspec.json.encode(found))
"""


@pytest.fixture(scope="module", params=[digest_gpu.PROGRAMS, 1], ids=["tile by tile", "many tiles a program"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Digest]]:
    """What the kernel says of every group: in a process of its own, as Triton reads TRITON_INTERPRET once."""
    file = tmp_path_factory.mktemp("groups") / "groups.pt"
    torch.save(GROUPS, file)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", SCRIPT, str(file), str(request.param)]
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    return msgspec.json.decode(output, type=dict[str, list[Digest]])


def exact(one: Digest) -> Digest:
    return msgspec.structs.replace(one, l1=None)


@pytest.mark.parametrize("group", GROUPS)
def test_the_kernel_computes_the_digest_of_the_host(found: dict[str, list[Digest]], group: str) -> None:
    expected = [digest(tensor) for tensor in GROUPS[group]]

    assert [exact(one) for one in found[group]] == [exact(one) for one in expected]
    assert [one.l1 for one in found[group]] == [
        one.l1 if one.l1 is None else pytest.approx(one.l1, rel=1e-5) for one in expected
    ]


@pytest.mark.parametrize("count", [1, 8, 9, 20])
def test_tables_take_eight_tensors_each(count: int) -> None:
    tables = digest_gpu.tables([torch.zeros(5)] * count)

    assert [table.count for table in tables] == [8] * (count // 8) + [count % 8] * (count % 8 > 0)
    assert all(table.count + len(table.padding) == 8 for table in tables)


@pytest.mark.parametrize("target", [GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64)], ids=str)
def test_the_kernel_compiles_for_a_gpu(
    target: GPUTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernel = digest_gpu.digest_kernel
    signature = {name: "i64" if name.startswith("p") else "*i64" for name in kernel.arg_names}
    compiled = triton.compile(ASTSource(kernel, signature, {}), target=target)

    assert compiled.asm["cubin" if target.backend == "cuda" else "hsaco"]
