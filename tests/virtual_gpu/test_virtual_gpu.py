"""The virtual GPU against torch on the CPU: its results, its compilations, and the state it restores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor_config
import triton
import triton.language as tl
from torch._inductor.compile_fx import compile_fx as inductor_backend
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch.utils._python_dispatch import TorchDispatchMode
from triton.language.extra import libdevice
from triton.runtime.driver import driver
from triton.tools.tensor_descriptor import TensorDescriptor

from tracing.errors import Problem
from tracing.virtual_gpu import virtual_gpu
from tracing.virtual_gpu.chips import parse_target
from tracing.virtual_gpu.self_test import self_test


@pytest.fixture
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask) + tl.load(y_ptr + offsets, mask), mask)


def add(x: Any, y: Any) -> Any:
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out


@triton.jit
def twice_kernel(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    out.store([row, column], x.load([row, column]) * 2)


def twice(x: Any) -> Any:
    x = x.sin()
    out = torch.empty_like(x)
    blocks = [16, 32]
    tensors = TensorDescriptor.from_tensor(x, blocks), TensorDescriptor.from_tensor(out, blocks)
    twice_kernel[(triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 32))](*tensors, *blocks)
    return out


# ---- the driver ----


def test_an_unknown_target_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(Problem, match=r"sm_89a.*sm_90"):
        parse_target("sm_89a")


def test_an_amd_target_has_wavefronts_of_64() -> None:
    target = parse_target("gfx942")

    assert (target.backend, target.arch, target.warp_size) == ("hip", "gfx942", 64)


def test_a_second_virtual_gpu_inside_the_first_is_refused(gpu: None) -> None:
    with pytest.raises(Problem, match="already"), virtual_gpu():
        pass


def test_everything_is_restored_after_an_exception() -> None:
    before = driver._active, inductor_config.cpu_backend, dict(vars(CachingAutotuner)), dict(vars(tl.core))
    with pytest.raises(ZeroDivisionError), virtual_gpu():
        add(torch.ones(4), torch.ones(4))
        raise ZeroDivisionError

    assert before == (
        driver._active,
        inductor_config.cpu_backend,
        dict(vars(CachingAutotuner)),
        dict(vars(tl.core)),
    )


def test_a_kernel_has_every_stage_down_to_the_cubin(gpu: None) -> None:
    x = torch.ones(64)
    kernel = add_kernel[(1,)](x, x, x, 64, BLOCK=64)

    assert {"ttir", "ttgir", "llir", "ptx", "cubin"} <= set(kernel.asm)


def test_amd_kernels_compile_to_hsaco_and_execute() -> None:
    x, out = torch.randn(100), torch.empty(100)
    with virtual_gpu("gfx942"):
        kernel = add_kernel[(2,)](x, x, out, 100, BLOCK=64)
        compiled = torch.compile(torch.nn.functional.silu)(x)

    assert "hsaco" in kernel.asm
    assert torch.equal(out, x + x)
    torch.testing.assert_close(compiled, torch.nn.functional.silu(x))


def test_hooks_surround_the_execution(gpu: None) -> None:
    x, out, seen = torch.ones(64), torch.zeros(64), []

    def hook(metadata: Any) -> None:
        seen.append((metadata.get()["name"], out[0].item()))

    hooks = triton.knobs.runtime
    hooks.launch_enter_hook.add(hook), hooks.launch_exit_hook.add(hook)
    try:
        add_kernel[(1,)](x, x, out, 64, BLOCK=64)
    finally:
        hooks.launch_enter_hook.remove(hook), hooks.launch_exit_hook.remove(hook)

    assert seen == [("add_kernel", 0.0), ("add_kernel", 2.0)]


@pytest.mark.parametrize(("target", "widest"), [("sm_90", 65535), ("gfx942", 65536)])
def test_a_grid_that_the_driver_refuses_is_refused(target: str, widest: int) -> None:
    with virtual_gpu(target):
        x = torch.ones(4)
        for grid in ((1, widest + 1), (1, 1, widest + 1)):
            with pytest.raises(RuntimeError, match="invalid argument"):
                add_kernel[grid](x, x, x, 4, 4)


def test_a_launch_shows_no_operator_to_a_dispatch_mode(gpu: None) -> None:
    names: list[str] = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(func))
            return func(*args, **kwargs or {})

    x, out = torch.ones(8, requires_grad=True), torch.zeros(8)
    with Names():
        unary_kernel[(1,)](x, out, FUNCTION=libdevice_exp, BLOCK=8)

    assert names == [] and not out.requires_grad
    torch.testing.assert_close(out, x.detach().exp())


def test_kernels_of_another_target_are_not_reused() -> None:
    x = torch.ones(64)
    with virtual_gpu("sm_80"):
        first = add_kernel[(1,)](x, x, x, 64, BLOCK=64)
    with virtual_gpu("sm_90"):
        second = add_kernel[(1,)](x, x, x, 64, BLOCK=64)

    assert (first.metadata.target.arch, second.metadata.target.arch) == (80, 90)


# ---- autotuners ----


@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 32})], key=["n"])
@triton.heuristics({"EVEN": lambda values: values["n"] % values["BLOCK"] == 0})
@triton.jit
def accumulate_kernel(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets) if EVEN else tl.load(x_ptr + offsets, offsets < n)
    tl.store(x_ptr + offsets, x + 1, offsets < n)


def test_autotuning_picks_the_first_configuration_and_executes_once(gpu: None) -> None:
    x = torch.zeros(200)
    accumulate_kernel[lambda meta: (triton.cdiv(200, meta["BLOCK"]),)](x, 200)

    assert accumulate_kernel.best_config.kwargs == {"BLOCK": 128}
    assert torch.equal(x, torch.ones(200))


@triton.autotune(
    [triton.Config({"BLOCK": 128}, num_stages=6), triton.Config({"BLOCK": 32}, num_stages=2)], key=[]
)
@triton.jit
def blocked_dot_kernel(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + rows * K + k + columns, (rows < 32) & (k + columns < K), 0.0)
        b = tl.load(b_ptr + (k + rows) * 32 + columns, (k + rows < K) & (columns < 32), 0.0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows * 32 + columns, total, (rows < 32) & (columns < 32))


def test_a_configuration_that_needs_too_much_shared_memory_loses(gpu: None) -> None:
    a, b, c = torch.randn(32, 96).bfloat16(), torch.randn(96, 32).bfloat16(), torch.empty(32, 32)
    blocked_dot_kernel[(1,)](a, b, c, 96)

    assert blocked_dot_kernel.best_config.kwargs == {"BLOCK": 32}
    torch.testing.assert_close(c, a.float() @ b.float())


# ---- the language ----


@triton.jit
def libdevice_exp(x):
    return libdevice.exp(x)


@triton.jit
def libdevice_chain(x):
    return libdevice.tanh(libdevice.erf(x)) + libdevice.rsqrt(libdevice.pow(x, 2.0) + 1.0)


@triton.jit
def libdevice_bits(x):
    return tl.where(libdevice.signbit(x) != 0, libdevice.llrint(x), libdevice.ilogb(x)).to(tl.float32)


@triton.jit
def libdevice_missing(x):
    return libdevice.jn(tl.full(x.shape, 2, tl.int32), x)


@triton.jit
def inline_assembly(x):
    return tl.inline_asm_elementwise(
        "tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def unary_kernel(x_ptr, out_ptr, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, FUNCTION(tl.load(x_ptr + offsets)))


def unary(function: Any, x: Any) -> Any:
    out = torch.empty_like(x)
    unary_kernel[(1,)](x, out, FUNCTION=function, BLOCK=x.numel())
    return out


def test_libdevice_is_computed(gpu: None) -> None:
    x = torch.randn(64)

    torch.testing.assert_close(unary(libdevice_chain, x), x.erf().tanh() + torch.rsqrt(x**2 + 1))


def test_libdevice_results_have_the_types_of_the_device(gpu: None) -> None:
    x = torch.tensor([-2.5, -1.5, 3.0, 0.25])

    assert unary(libdevice_bits, x).tolist() == [-2.0, -2.0, 1.0, -2.0]


def test_a_construct_that_cannot_be_executed_is_named(gpu: None) -> None:
    with pytest.raises(Problem, match=r"jnf of unary_kernel at test_virtual_gpu\.py:.*not judged"):
        unary(libdevice_missing, torch.ones(4))
    with pytest.raises(Problem, match=r"tanh\.approx"):
        unary(inline_assembly, torch.ones(4))


@triton.jit
def bf16_kernel(x_ptr, y_ptr, out_ptr, scale, n: tl.constexpr):
    offsets = tl.arange(0, n)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, tl.where(x > y, x * y + x, -x / y))
    tl.store(out_ptr + n + offsets, x * scale)
    tl.store(out_ptr + 2 * n + offsets, tl.full((n,), 1.5, tl.bfloat16) + tl.maximum(x, y))
    tl.store(out_ptr + 3 * n, tl.sum(x.to(tl.float32)))
    tl.atomic_add(out_ptr + 4 * n + offsets % 4, y)


def test_bfloat16_rounds_as_torch_does(gpu: None) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(2, 256).bfloat16()
    out = torch.zeros(5, 256, dtype=torch.bfloat16)
    bf16_kernel[(1,)](x, y, out, 1.7, 256)

    assert torch.equal(out[0], torch.where(x > y, x * y + x, -x / y))
    assert torch.equal(out[1], (x.float() * 1.7).bfloat16())
    assert torch.equal(out[2], 1.5 + torch.maximum(x, y))
    torch.testing.assert_close(out[3, 0], x.float().sum().bfloat16())
    torch.testing.assert_close(out[4, :4], y.float().view(64, 4).sum(0).bfloat16(), atol=0.2, rtol=0.05)


def test_bfloat16_keeps_nan_and_infinity(gpu: None) -> None:
    x = torch.tensor([float("nan"), float("inf"), -0.0, 3.4e38]).bfloat16()

    torch.testing.assert_close(add(x, x), x + x, equal_nan=True)


@triton.jit
def take_left(a, b):
    return a


@triton.jit
def affine(a_scale, a_shift, b_scale, b_shift):
    return a_scale * b_scale, a_shift * b_scale + b_shift


@triton.jit
def combine_kernel(x_ptr, out_ptr, n: tl.constexpr):
    offsets = tl.arange(0, n)
    x = tl.load(x_ptr + tl.arange(0, 4)[:, None] * n + offsets[None, :])
    tl.store(out_ptr + tl.arange(0, 4), tl.reduce(x, 1, take_left))
    tl.store(out_ptr + 4 + tl.arange(0, 4), x.sum(1))
    tl.store(out_ptr + 8 + tl.arange(0, 4), tl.argmax(x, 1).to(tl.float32))
    _, shift = tl.associative_scan((x, x), 1, affine, reverse=False)
    tl.store(out_ptr + 12 + tl.arange(0, 4)[:, None] * n + offsets[None, :], shift)


def test_reductions_and_scans_keep_the_order_of_their_operands(gpu: None) -> None:
    x, out = torch.randn(4, 32), torch.empty(12 + 128)
    combine_kernel[(1,)](x, out, 32)
    expected = [x[:, 0]]
    for column in range(1, 32):
        expected.append(expected[-1] * x[:, column] + x[:, column])

    assert torch.equal(out[:4], x[:, 0])
    assert torch.equal(out[8:12], x.argmax(1).float())
    torch.testing.assert_close(out[4:8], x.sum(1))
    torch.testing.assert_close(out[12:].view(4, 32), torch.stack(expected, 1))


def test_a_kernel_may_use_names_of_the_function_around_it(gpu: None) -> None:
    three = tl.constexpr(3)

    @triton.jit
    def fill(out_ptr):
        tl.store(out_ptr, three)

    out = torch.zeros(1)
    fill[(1,)](out)

    assert out.item() == 3


def test_a_loop_variable_is_a_tensor(gpu: None) -> None:
    @triton.jit
    def total(out_ptr, n):
        result = 0.0
        for k in range(0, n):
            result += k.to(tl.float32)
        tl.store(out_ptr, result)

    out = torch.zeros(1)
    total[(1,)](out, 10)

    assert out.item() == 45


def test_random_numbers_are_uniform_and_reproducible(gpu: None) -> None:
    @triton.jit
    def draw(out_ptr, seed, n: tl.constexpr):
        tl.store(out_ptr + tl.arange(0, n), tl.rand(seed, tl.arange(0, n)))

    first, second = torch.empty(2, 256)
    draw[(1,)](first, 7, 256), draw[(1,)](second, 7, 256)

    assert torch.equal(first, second)
    assert first.min() >= 0 and first.max() < 1 and abs(first.mean() - 0.5) < 0.1


def test_kernels_still_compile_after_one_was_interpreted(gpu: None) -> None:
    x = torch.randn(4, 32)
    combine_kernel[(1,)](x, torch.empty(140), 32)
    kernel = add_kernel[(2,)](x.double(), x.double(), x.double(), 128, BLOCK=64)

    assert "cubin" in kernel.asm


# ---- torch.compile ----


def inductor_launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    original = CachingAutotuner.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        names.append(self.fn.__name__)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(CachingAutotuner, "run", run)
    return names


@pytest.mark.parametrize(("kernel", "function"), [
    ("triton_poi", lambda x: torch.nn.functional.gelu(x) * torch.sigmoid(x)),
    ("triton_per", lambda x: torch.softmax(x, -1)),
    ("triton_red", lambda x: torch.var(torch.cat([x] * 40, -1), -1)),
])  # fmt: skip
def test_inductor_emits_and_runs_triton(
    gpu: None, monkeypatch: pytest.MonkeyPatch, kernel: str, function: Any
) -> None:
    launches, x = inductor_launches(monkeypatch), torch.randn(3, 70)
    actual = torch.compile(function)(x)

    assert any(name.startswith(kernel) for name in launches)
    torch.testing.assert_close(actual, function(x))


@pytest.mark.parametrize(("target", "compiled"), [("sm_90", True), ("sm_80", False)])
def test_a_graph_has_launches_with_descriptors_of_the_host_if_the_target_has_them(
    target: str, compiled: bool
) -> None:
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return inductor_backend(graph, inputs)

    x = torch.randn(50, 72)
    with virtual_gpu(target):
        actual = torch.compile(twice, backend=backend)(x)

    assert any("triton_kernel_wrapper" in str(one.code) for one in graphs) is compiled
    torch.testing.assert_close(actual, x.sin() * 2)


def test_atomics_of_a_broadcast_value(gpu: None) -> None:
    x, index = torch.zeros(4, 33), torch.tensor([0, 2, 1, 2])

    def count(x: Any) -> Any:
        return x.index_put((index,), torch.ones(4, 33), accumulate=True)

    torch.testing.assert_close(torch.compile(count)(x), count(x))


def test_a_scattered_sum_is_a_kernel_whatever_the_number_of_threads(
    gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch._inductor.utils.parallel_num_threads", lambda: 2)
    launches, x, index = inductor_launches(monkeypatch), torch.rand(4, 5), torch.tensor([[0, 2, 1, 2, 2]])

    def added(x: Any) -> Any:
        return x.scatter_add(0, index, x.sin())

    torch.testing.assert_close(torch.compile(added)(x), added(x))
    assert any("sin" in name for name in launches) and len(launches) == 2


def test_float8_rounds_as_torch_does(gpu: None) -> None:
    x = torch.linspace(-400, 400, 101)

    assert torch.equal(
        torch.compile(lambda x: x.to(torch.float8_e4m3fn).float())(x), x.to(torch.float8_e4m3fn).float()
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_inductor_agrees_in_half_precision(gpu: None, dtype: Any) -> None:
    x = torch.randn(4, 64).to(dtype)

    torch.testing.assert_close(
        torch.compile(torch.nn.functional.layer_norm)(x, (64,)), torch.nn.functional.layer_norm(x, (64,))
    )


def test_generated_code_may_have_what_measures_its_kernels(gpu: None) -> None:
    x = torch.randn(8, 8)

    with inductor_config.patch(benchmark_kernel=True, force_disable_caches=True):
        compiled = torch.compile(lambda x: (x.sin() @ x).exp())(x)

    assert torch.allclose(compiled, (x.sin() @ x).exp())


def test_a_user_kernel_inside_a_compiled_function(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    launches, x = inductor_launches(monkeypatch), torch.randn(100)
    actual = torch.compile(lambda x: add(x.sin(), x).cos(), fullgraph=True)(x)

    assert any(name.startswith("add_kernel") for name in launches)
    torch.testing.assert_close(actual, (x.sin() + x).cos())


def test_a_training_step_equals_eager(gpu: None) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4)
    )
    x = torch.randn(8, 16)

    def gradients(forward: Any) -> list[Any]:
        loss = torch.nn.functional.mse_loss(forward(x), torch.ones(8, 4))
        return [loss, *torch.autograd.grad(loss, list(model.parameters()))]

    torch.testing.assert_close(gradients(torch.compile(model)), gradients(model), atol=1e-5, rtol=1e-5)


def test_a_forked_process_can_run_a_backward_pass() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=False)

    assert done.stdout == "tensor([2.])\n", done.stderr


FORKS = """
import os
import torch
from tracing.virtual_gpu import virtual_gpu

def gradient():
    x = torch.ones(1, requires_grad=True)
    torch.compile(lambda x: (x * 2).sum(), backend="aot_eager")(x).backward()
    return x.grad

with virtual_gpu():
    gradient()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    else:
        print(gradient(), flush=True)
        os._exit(0)
"""


def test_functions_compiled_outside_are_recompiled_inside_and_vice_versa() -> None:
    compilations: list[object] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compilations.append(graph)
        return graph.forward

    compiled, x = torch.compile(lambda x: x.neg(), backend=backend), torch.ones(4)
    compiled(x)
    with virtual_gpu():
        compiled(x), compiled(x)
    compiled(x)

    assert len(compilations) == 3


CACHED = """
import torch
from torch._dynamo.utils import counters
from tracing.virtual_gpu import virtual_gpu
x = torch.linspace(-1, 1, 64)
with virtual_gpu():
    actual = torch.compile(lambda x: torch.softmax(x * 2, -1))(x)
torch.testing.assert_close(actual, torch.softmax(x * 2, -1))
print(counters["inductor"]["fxgraph_cache_hit"])
"""


@pytest.mark.soak
def test_a_second_process_executes_kernels_that_the_first_cached(tmp_path: Path) -> None:
    caches = {
        "TRITON_CACHE_DIR": str(tmp_path / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
    }
    environment = {**os.environ, **caches, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    hits = [
        subprocess.check_output([sys.executable, "-c", CACHED], env=environment, text=True) for _ in range(2)
    ]

    assert hits == ["0\n", "1\n"]


def test_the_self_test_reports_no_fault() -> None:
    assert self_test() == []
