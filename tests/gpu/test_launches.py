"""On a GPU: every Triton kernel that the profiler sees is in the run, none twice, however it is launched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from benchmarks.gpt2 import training_step
from handmade.records import INFO
from torch.profiler import ProfilerActivity, profile

from tracing import store
from tracing.model import KernelLaunch
from tracing.record.launches.launch_recorder import LaunchRecorder

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
OURS = "digest_kernel"


@triton.jit
def add_kernel(x_ptr, BLOCK: tl.constexpr, y_ptr, n):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@triton.autotune([triton.Config({"BLOCK": b}) for b in (128, 256)], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


SIZES = [((64, 64), 4), ((128, 64), 4), ((128, 128), 8)]


@triton.autotune([triton.Config({"M": m, "N": n, "K": 32}, num_warps=w) for (m, n), w in SIZES], key=["size"])
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, size, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = (tl.program_id(0) * M + tl.arange(0, M))[:, None]
    column = (tl.program_id(1) * N + tl.arange(0, N))[None, :]
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, size, K):
        k = start + tl.arange(0, K)
        a = tl.load(a_ptr + row * size + k[None, :])
        b = tl.load(b_ptr + k[:, None] * size + column)
        total += tl.dot(a, b)
    tl.store(c_ptr + row * size + column, total)


def added(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 128),)](x, 128, y, x.numel())
    return y


def tuned(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    return y


def silu() -> Callable[[], object]:
    x, up = (torch.rand(32, 1, 896, device="cuda") for _ in range(2))
    compiled = torch.compile(lambda x, up: torch.sigmoid(x) * x * up)
    return lambda: compiled(x, up)


def training() -> Callable[[], object]:
    layers = [torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8)]
    model = torch.compile(torch.nn.Sequential(*layers).cuda())
    x = torch.rand(32, 64, device="cuda")
    return lambda: model(x).softmax(-1).pow(2).sum().backward()


def flex_attention() -> Callable[[], object]:
    from torch.nn.attention.flex_attention import flex_attention as attention

    compiled = torch.compile(attention)
    q, k, v = (torch.rand(1, 2, 256, 64, device="cuda", requires_grad=True) for _ in range(3))
    return lambda: compiled(q, k, v).sum().backward()


def by_hand() -> Callable[[], object]:
    x = torch.rand(1000, device="cuda")
    return lambda: (added(x), tuned(x))


def user_kernel_compiled() -> Callable[[], object]:
    x = torch.rand(1000, device="cuda")
    compiled = torch.compile(lambda x: tuned(added(x * 3) + 1))
    return lambda: compiled(x)


def matmul() -> Callable[[], object]:
    a, b = (torch.rand(512, 512, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty(512, 512, device="cuda")
    matmul_kernel.cache.clear()
    return lambda: matmul_kernel[lambda meta: (512 // meta["M"], 512 // meta["N"])](a, b, c, 512)


def combo_kernel() -> Callable[[], object]:
    tensors = [torch.rand(size, device="cuda") for size in (100, 300, 5000)]
    compiled = torch.compile(
        lambda tensors: torch._foreach_add(tensors, 1.0), options={"combo_kernels": True}
    )
    return lambda: compiled(tensors)


def multi_kernel() -> Callable[[], object]:
    x = torch.rand(64, 600, device="cuda")
    compiled = torch.compile(lambda x: torch.softmax(x, -1), options={"triton.multi_kernel": 1})
    return lambda: compiled(x)


def fusion_by_benchmark() -> Callable[[], object]:
    x = torch.rand(512, 512, device="cuda")
    compiled = torch.compile(
        lambda x: torch.softmax(x * 2, -1).sum(0) + x.sum(0),
        options={"benchmark_fusion": True, "benchmark_kernel": True},
    )
    return lambda: compiled(x)


def gpt2() -> Callable[[], object]:
    return training_step(layers=2, batch=1)


def two_streams() -> Callable[[], object]:
    x = torch.rand(1000, device="cuda")
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]

    def run() -> None:
        for stream in streams * 3:
            with torch.cuda.stream(stream):
                added(x)

    return run


def recorded(runs: Path, call: Callable[[], object]) -> tuple[list[KernelLaunch], Counter[str], store.Run]:
    call()  # compile and autotune
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        with LaunchRecorder(store.create(runs, INFO)) as recorder:
            call()
        torch.cuda.synchronize()
    run = store.Run(recorder.writer.path)
    events = (e.name for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA)
    seen = Counter(name for name in events if re.match(r"triton_|(add|tuned|matmul)_kernel", name))
    return list(run.launches()), seen, run


CHOSEN = [matmul, combo_kernel, multi_kernel, fusion_by_benchmark]  # among several, which are tried first
CASES = [silu, training, gpt2, flex_attention, by_hand, user_kernel_compiled, two_streams]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_every_kernel_that_the_profiler_saw_is_recorded_once(
    case: Callable[[], Callable[[], object]], tmp_path: Path
) -> None:
    torch._dynamo.reset()
    launches, seen, _ = recorded(tmp_path, case())

    print(f"\n{case.__name__}: the profiler saw {sum(seen.values())}, recorded {len(launches)}")
    assert seen == Counter(launch.kernel_name for launch in launches)
    assert seen
    assert all(launch.finished for launch in launches)
    tensors = [arg for launch in launches for arg in launch.args if arg.tensor]
    assert all(arg.before or (arg.declared == "out" and arg.after) for arg in tensors)


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.__name__)
def test_launches_by_which_kernels_are_chosen_are_left_out(
    case: Callable[[], Callable[[], object]], tmp_path: Path
) -> None:
    torch._dynamo.reset()
    call = case()
    with LaunchRecorder(store.create(tmp_path, INFO)) as recorder:
        call()
    launches, seen, _ = recorded(tmp_path, call)

    first = Counter(launch.kernel_name for launch in store.Run(recorder.writer.path).launches())
    print(f"\n{case.__name__}: the profiler saw {sum(seen.values())}, recorded {len(launches)}")
    assert first == seen == Counter(launch.kernel_name for launch in launches)
    assert seen


def test_launches_keep_their_streams(tmp_path: Path) -> None:
    launches, _, _ = recorded(tmp_path, two_streams())

    streams = [launch.stream for launch in launches]
    assert streams == [streams[0], streams[1]] * 3
    assert streams[0] != streams[1]


def test_digests_of_the_gpu_are_those_of_the_host(tmp_path: Path) -> None:
    from tracing.digest.host import digest

    x = torch.rand(1000, device="cuda")
    launches, _, _ = recorded(tmp_path, lambda: added(x))

    assert launches[0].args[0].before.bits == digest(x.cpu()).bits  # type: ignore[union-attr]
    assert launches[0].args[1].after.bits == digest((x + 1).cpu()).bits  # type: ignore[union-attr]
