"""Programs for a CUDA device run unchanged on a virtual GPU."""

from __future__ import annotations

import subprocess
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from commands import DATA, recorded, tracing
from data import kernels
from handmade.records import INFO
from torch._higher_order_ops.associative_scan import associative_scan
from torch.overrides import TorchFunctionMode
from triton._C.libtriton import nvidia

from tracing import store
from tracing.model import Compilation, NotCovered, Outcome
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu
from tracing.virtual_gpu.binary import resources

CUOBJDUMP = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"


@triton.jit
def add_one(x_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1, mask=at < n)


@pytest.mark.parametrize("target", ["sm_90", pytest.param("gfx942", marks=pytest.mark.soak)])
def test_a_program_in_the_style_of_the_tutorials_runs_and_agrees_with_eager(
    target: str, tmp_path: Path
) -> None:
    run = store.Run(Path(recorded(str(DATA / "cuda_style.py"), tmp_path, "--target", target)))

    assert {one.kernel_name for one in run.records(Compilation)} >= {"row_max"}
    assert "row_max" in [launch.kernel_name for launch in run.launches()]


@pytest.mark.parametrize(
    ("target", "capability", "warp"),
    [("sm_80", (8, 0), 32), ("sm_103", (10, 3), 32), ("gfx942", (9, 4), 64), ("gfx1100", (11, 0), 32)],
)
def test_questions_about_the_device_are_answered_for_the_target(
    target: str, capability: tuple[int, int], warp: int
) -> None:
    with virtual_gpu(target):
        properties = torch.cuda.get_device_properties("cuda")
        device = triton.runtime.driver.active.utils.get_device_properties(0)

        assert torch.cuda.is_available() and torch.cuda.device_count() == 1
        assert torch.cuda.get_device_capability() == capability
        assert (properties.major, properties.minor, properties.warp_size) == (*capability, warp)
        assert device["multiprocessor_count"] == properties.multi_processor_count
        assert device["warpSize"] == warp
        assert ("max_threads_per_sm" in device) == target.startswith("gfx")  # like the vendors' drivers

    assert not torch.cuda.is_available()


def test_cuda_tensors_report_cuda_to_the_program_and_are_on_the_host() -> None:
    with virtual_gpu():
        made = [
            torch.empty(3, device="cuda"), torch.zeros(3, device=torch.device("cuda", 0)),
            torch.rand(3, device=0), torch.tensor([1, 2], device="cuda:0"), torch.ones(3).cuda(),
            torch.ones(3).to("cuda"), torch.ones(3).to("cuda", torch.float16), torch.ones(3).to(device=0),
            torch.nn.Linear(2, 2, device="cuda").weight, torch.nn.Linear(2, 2).cuda().weight,
            torch.randn(3, device="cuda") * 2, torch.ones(3, device="cuda").new_zeros(2),
        ]  # fmt: skip
        with torch.device("cuda"):
            made.append(torch.arange(4))
        devices = {(one.device, one.is_cuda, one.get_device()) for one in made}

    assert devices == {(torch.device("cuda", 0), True, 0)}
    assert {str(one.device) for one in made} == {"cpu"}  # the true device, outside of the virtual GPU


def test_the_device_count_is_one() -> None:
    with virtual_gpu(), pytest.raises(RuntimeError, match="invalid device ordinal 1"):
        torch.empty(3, device="cuda:1")


def test_moving_a_tensor_copies_it_as_on_a_gpu() -> None:
    with virtual_gpu():
        host = torch.zeros(8)
        x = host.cuda()
        before = x.cpu()
        add_one[(1,)](x, 8, BLOCK=8)
        same = x.to("cuda")

    assert (host.sum(), before.sum(), x.sum()) == (0, 0, 8)
    assert same is x


def test_random_number_generators_and_autocast_of_cuda_work() -> None:
    with virtual_gpu():
        torch.cuda.manual_seed(3)
        first = torch.rand(4, device="cuda")
        torch.cuda.manual_seed_all(3)
        generator = torch.Generator(device="cuda").manual_seed(5)
        drawn = torch.rand(4, device="cuda", generator=generator)
        with torch.autocast("cuda"):
            product = torch.rand(4, 4, device="cuda") @ torch.rand(4, 4, device="cuda")

        assert torch.equal(first, torch.rand(4, device="cuda")) is False
        assert isinstance(generator, torch.Generator)
    torch.manual_seed(3)
    assert torch.equal(first, torch.rand(4))
    assert torch.equal(drawn, torch.rand(4, generator=torch.Generator().manual_seed(5)))
    assert product.dtype == torch.float16


def test_the_generator_of_the_device_is_saved_and_restored() -> None:
    with virtual_gpu():
        states = torch.cuda.get_rng_state_all()
        with torch.random.fork_rng(devices=[0], device_type="cuda"):
            first = torch.rand(4, device="cuda")
        second = torch.rand(4, device="cuda")
        torch.cuda.set_rng_state_all(states)
        third = torch.rand(4, device="cuda")
        torch.cuda.random.set_rng_state(states[0], torch.device("cuda", 0))

        assert torch.equal(torch.cuda.get_rng_state("cuda:0"), torch.cuda.random.get_rng_state())
        for drawn in (second, third, torch.rand(4, device="cuda")):
            assert torch.equal(first, drawn)


def test_streams_and_events_work_and_launches_have_their_stream() -> None:
    streams: list[int] = []
    with virtual_gpu():
        triton.knobs.runtime.launch_enter_hook.add(note := lambda data: streams.append(data.get()["stream"]))
        try:
            stream, start, end = (
                torch.cuda.Stream(),
                *(torch.cuda.Event(enable_timing=True) for _ in range(2)),
            )
            x = torch.zeros(8, device="cuda")
            with torch.cuda.stream(stream):
                start.record()
                add_one[(1,)](x, 8, BLOCK=8)
                end.record()
            torch.cuda.current_stream().wait_stream(stream)
            add_one[(1,)](x, 8, BLOCK=8)
        finally:
            triton.knobs.runtime.launch_enter_hook.remove(note)
        assert start.elapsed_time(end) == 1.0

    assert streams == [stream.cuda_stream, 0]
    assert stream.cuda_stream


def test_memory_is_pinned_used_on_streams_and_counted_without_effect() -> None:
    with virtual_gpu():
        x = torch.ones(3, pin_memory=True).cuda(non_blocking=True)
        with torch.cuda.device(0), torch.cuda.device_of(x):
            x.record_stream(torch.cuda.Stream())

        torch.cuda.set_per_process_memory_fraction(0.5)
        torch.cuda.memory._record_memory_history()
        assert torch.cuda.memory_snapshot() == torch.cuda.memory._snapshot()["segments"] == []
        assert torch.get_device_module() is torch.get_device_module("cuda:0") is torch.cuda
        assert not torch.cuda.can_device_access_peer(0, 0)
        assert torch.cuda.memory_stats()["allocated_bytes.all.peak"] == 0
        assert "does not measure" in torch.cuda.memory_summary(torch.cuda.current_device())
        assert x.sum().item() == 3


def test_a_gradient_scaler_is_enabled_and_skips_steps_that_overflow() -> None:
    with virtual_gpu():
        weight = torch.nn.Parameter(torch.ones(2, dtype=torch.float32, device="cuda"))
        optimizer, scaler = torch.optim.SGD([weight], lr=1.0), torch.amp.GradScaler("cuda", init_scale=4.0)
        weights = []
        for factor in (torch.inf, 0.5):
            optimizer.zero_grad()
            scaler.scale((weight * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            weights.append(weight.tolist())

    assert scaler.is_enabled() and scaler.get_scale() == 2.0
    assert weights == [[1.0, 1.0], [0.5, 0.5]]


@pytest.mark.parametrize("foreach", [False, True, None])
def test_optimizers_keep_their_state_on_the_device(foreach: bool | None) -> None:
    kinds = torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.NAdam, torch.optim.Adadelta
    with virtual_gpu():
        for kind in kinds:
            weight = torch.nn.Parameter(torch.ones(2, device="cuda"))
            weight.grad = torch.ones_like(weight)
            kind([weight], lr=0.5, capturable=True, foreach=foreach).step()
            assert weight.tolist() != [1.0, 1.0]
    with pytest.raises(AssertionError, match="capturable"):
        weight = torch.nn.Parameter(torch.ones(2))
        weight.grad = torch.ones_like(weight)
        torch.optim.Adam([weight], capturable=True).step()


def test_capturing_a_cuda_graph_is_refused_with_the_reason() -> None:
    with virtual_gpu(), pytest.raises(RuntimeError, match="the virtual GPU captures no CUDA graph"):
        torch.cuda.CUDAGraph()


def test_torch_s_own_code_sees_the_true_device() -> None:
    with virtual_gpu():
        x = torch.ones(3, device="cuda", requires_grad=True)
        torch.save(x, file := __import__("io").BytesIO())
        file.seek(0)
        loaded = torch.load(file, map_location="cuda")
        text = repr(x)

        assert loaded.is_cuda
    assert "cuda" not in text


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        assert gradient.is_cuda
        return gradient * torch.full((2,), 2.0, device="cuda")


@pytest.mark.parametrize("start", ["backward", "grad"])
def test_backward_passes_make_tensors_on_the_device(start: str) -> None:
    with virtual_gpu():
        x = torch.ones(2, device="cuda", requires_grad=True)
        y = Doubled.apply(x)
        y.register_hook(lambda gradient: gradient + torch.ones(2).to("cuda"))
        if start == "backward":
            y.sum().backward()
        gradient = x.grad if start == "backward" else torch.autograd.grad(y.sum(), x)[0]

    assert gradient.tolist() == [4, 4]


def test_a_gradient_in_compiled_code_is_that_of_eager() -> None:
    def gradient(x: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad((x**2).sum(), x)[0]

    with virtual_gpu():
        x = torch.full((3,), 3.0, device="cuda", requires_grad=True)
        assert torch.compile(gradient)(x).tolist() == gradient(x).tolist() == [6, 6, 6]


def test_operators_of_the_program_make_tensors_on_the_device() -> None:
    with virtual_gpu(), torch.library._scoped_library("tracing_placed", "FRAGMENT") as library:
        library.define("both(Tensor x) -> Tensor")
        library.impl("both", lambda x: x * 3, "CPU")
        library.impl("both", lambda x: x + torch.ones(2, device="cuda") * x.is_cuda, "CUDA")
        library.impl("both", torch.library.fallthrough_kernel, "AutogradCUDA")

        @torch.library.custom_op(
            "tracing_placed::more", mutates_args=(), device_types="cuda", schema="(Tensor x) -> Tensor"
        )
        def more(x):  # type: ignore[no-untyped-def]
            return x + torch.ones(2).cuda()

        x = torch.ones(2, device="cuda")
        assert torch.ops.tracing_placed.both(x).tolist() == [2, 2]
        assert more(x).tolist() == [2, 2]


def test_a_compiled_program_sees_the_same_device_as_eager() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        if x.device.type != "cuda" or not x.is_cuda or not torch.cuda.is_available():
            return x * float("nan")
        big = torch.zeros(x.shape, device="cuda") + torch.arange(4, device=x.device)
        return (
            x.cuda() + big.to("cuda:0") + torch.ones(4).to(x.device) * torch.cuda.get_device_capability()[0]
        )

    with virtual_gpu("sm_90"):
        x = torch.rand(4, device="cuda")
        compiled = torch.compile(fn, fullgraph=True)(x)

        torch.testing.assert_close(compiled, fn(x))
    assert compiled.isfinite().all()


def test_cublas_and_hipblas_multiply_without_their_libraries() -> None:
    a, b = torch.randn(3, 8).half(), torch.randn(5, 8).half()
    with virtual_gpu():
        blas = nvidia.cublas.CublasLt(torch.empty(16, dtype=torch.uint8, device="cuda"))
        c = torch.empty(3, 5, dtype=torch.float16, device="cuda")
        blas.matmul(a, b, c)
        d = torch.empty_like(c)
        blas.gemm(a, b, c, d, 2.0, 1.0)

    torch.testing.assert_close(c, (a.float() @ b.float().T).half())
    torch.testing.assert_close(d, 3 * c, rtol=1e-2, atol=1e-2)
    assert "tracing" not in nvidia.cublas.CublasLt.__module__


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_and_layer_norms_in_half_precision_add_up_in_float32(dtype: torch.dtype) -> None:
    x, weight = torch.randn(700, 64).to(dtype), torch.rand(64).to(dtype).requires_grad_()
    bias = torch.zeros(64, dtype=dtype, requires_grad=True)
    gradient = torch.randn(700, 64).to(dtype)
    with virtual_gpu():
        product = torch.matmul(x.T, x)
        torch.nn.functional.layer_norm(x, (64,), weight, bias).backward(gradient)

    exact = gradient.double().sum(0)
    ulp = torch.finfo(dtype).eps * exact.abs().max()
    assert bias.grad is not None and (bias.grad.double() - exact).abs().max() <= ulp
    torch.testing.assert_close(product, (x.double().T @ x.double()).to(dtype))


@pytest.mark.parametrize(
    ("kernel", "target"), [("vector_add", "sm_90"), ("softmax", "sm_80"), ("matmul", "sm_100")]
)
def test_registers_and_spills_are_those_that_nvidia_s_tool_reads_in_a_cubin(
    kernel: str, target: str, tmp_path: Path
) -> None:
    cubin = kernels.compiled(kernel, target)["cubin"]
    assert isinstance(cubin, bytes)
    (file := tmp_path / "kernel.cubin").write_bytes(cubin)
    call = [CUOBJDUMP, "--dump-resource-usage", file]
    said = subprocess.run(call, capture_output=True, text=True, check=True).stdout.split()
    usage = dict(word.split(":") for word in said if word.startswith(("REG:", "STACK:")))

    read = resources(cubin)

    assert (read.registers, read.spills * 4) == (int(usage["REG"]), int(usage["STACK"]))


def test_registers_are_read_in_an_hsaco_too_and_unknown_without_a_binary() -> None:
    hsaco = kernels.compiled("softmax", "gfx942")["hsaco"]
    assert isinstance(hsaco, bytes)

    assert 0 < (resources(hsaco).registers or 0) < 513
    assert resources(b"no binary").registers is None


def test_a_benchmark_executes_its_function_once_and_tuning_does_not() -> None:
    configs = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})]
    tuned = triton.autotune(configs, key=["n"])(add_one)
    with virtual_gpu():
        x, y = torch.zeros(32, device="cuda"), torch.zeros(32, device="cuda")
        time = triton.testing.do_bench(lambda: add_one[(1,)](x, 32, BLOCK=32))
        several = triton.testing.do_bench(lambda: None, quantiles=[0.5, 0.2])
        tuned[lambda meta: (32 // meta["BLOCK"],)](y, 32)

    assert (time, several) == (1.0, [1.0, 1.0])
    assert (x == 1).all() and (y == 1).all()


def test_a_report_runs_each_line_at_its_first_size(capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[Any] = []
    benchmark = triton.testing.Benchmark(
        x_names=["M", "N"], x_vals=[16, 32, 64], line_arg="provider", line_vals=["a", "b"],
        line_names=["A", "B"], plot_name="speed", args={"k": 3},
    )  # fmt: skip

    @triton.testing.perf_report(benchmark)
    def measured(M: int, N: int, provider: str, k: int, more: int = 0) -> float:
        ran.append((M, N, provider, k, more))
        return 1.0

    with virtual_gpu():
        measured.run(show_plots=True, print_data=True, save_path=".", more=4)

    assert ran == [(16, 16, "a", 3, 4), (16, 16, "b", 3, 4)]
    assert "speed: run once, at the first of 3 sizes" in capsys.readouterr().err


def test_a_report_compiles_the_launches_that_it_measures_and_executes_the_others() -> None:
    benchmark = triton.testing.Benchmark(
        x_names=["n"], x_vals=[32], line_arg="provider", line_vals=["triton"], line_names=["Triton"],
        plot_name="speed", args={},
    )  # fmt: skip
    seen: list[torch.Tensor] = []

    @triton.testing.perf_report(benchmark)
    def measured(n: int, provider: str) -> Any:
        x, y = torch.zeros(n, device="cuda"), torch.zeros(n, device="cuda")
        seen.extend((x, y))
        add_one[(1,)](x, n, BLOCK=32)
        return triton.testing.do_bench(lambda: add_one[(1,)](y, n, BLOCK=32))

    with virtual_gpu():
        measured.run()
        seen.append(torch.zeros(32, device="cuda"))
        triton.testing.do_bench(lambda: add_one[(1,)](seen[-1], 32, BLOCK=32))

    assert [int(one.sum()) for one in seen] == [32, 0, 32]


@pytest.mark.soak
def test_launches_of_a_report_are_not_recorded(tmp_path: Path) -> None:
    run = store.Run(Path(recorded(str(DATA / "measured.py"), tmp_path)))

    assert [launch.kernel_name for launch in run.launches()] == ["prepare"]


@pytest.mark.parametrize(("execute", "count"), [(True, 1), (False, 3)])
def test_an_autotuner_compiles_up_to_the_first_configuration_that_fits(
    execute: bool, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    configs = [triton.Config({"BLOCK": block}) for block in (16, 32, 64)]
    tuned = triton.autotune(configs, key=["n"])(triton.jit(add_one.fn))
    x = torch.zeros(32, device="cpu")
    with virtual_gpu(execute=execute):
        tuned[lambda meta: (triton.cdiv(32, meta["BLOCK"]),)](x, 32)
        compiled = sum(len(caches[0]) for caches in tuned.fn.device_caches.values())

    assert compiled == count
    assert tuned.best_config.kwargs == {"BLOCK": 16}
    assert ("2 of its configurations are not compiled" in capsys.readouterr().err) is execute


def test_configurations_of_a_kernel_in_compiled_code_that_are_not_executed_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configs = [triton.Config({"BLOCK": block}) for block in (16, 32, 64)]
    tuned = triton.autotune(configs, key=["n"])(triton.jit(add_one.fn))

    @torch.compile
    def added(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        tuned[lambda meta: (triton.cdiv(32, meta["BLOCK"]),)](y, 32)
        return y

    with virtual_gpu():
        for _ in range(2):
            assert added(torch.zeros(32)).sum() == 32

    assert (
        capsys.readouterr().err.count("add_one: 2 of its configurations are compiled and not executed") == 1
    )


def test_everything_is_restored_afterwards() -> None:
    names = ("is_available", "get_device_properties", "Stream", "Event", "stream", "synchronize")
    before = [getattr(torch.cuda, name) for name in names]
    others = (torch.Generator, torch.load, triton.testing.do_bench, triton.testing.Mark.run)
    with virtual_gpu("sm_90"):
        torch.cuda.set_stream(torch.cuda.Stream())
        assert torch.cuda.is_available()

    assert [getattr(torch.cuda, name) for name in names] == before
    assert (torch.Generator, torch.load, triton.testing.do_bench, triton.testing.Mark.run) == others
    assert torch._C._len_torch_function_stack() == 0
    with pytest.raises((AssertionError, RuntimeError)):  # from a torch for the CPU, and from one for CUDA
        torch.empty(3, device="cuda")


def test_a_program_s_own_function_mode_sees_the_requested_devices() -> None:
    asked: list[Any] = []

    class Watching(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append((kwargs or {}).get("device"))
            return func(*args, **(kwargs or {}))

    with virtual_gpu(), Watching():
        x = torch.empty(3, device="cuda")

    assert asked == ["cuda"]
    assert x.device.type == "cpu"


# ---- launches that are compiled and not executed


@pytest.mark.soak
def test_with_compile_only_kernels_are_compiled_and_recorded_and_nothing_is_computed(tmp_path: Path) -> None:
    run = store.Run(Path(recorded(str(DATA / "gluon_case.py"), tmp_path, "--compile-only")))

    (compilation,), (launch,) = list(run.records(Compilation)), list(run.launches())
    (outcome,) = run.records(Outcome)
    assert (compilation.kernel_name, compilation.language) == ("scaled", "gluon")
    assert (launch.kernel_name, launch.grid, launch.args[0].before) == ("scaled", (2, 1, 1), None)
    assert (outcome.status, run.info.digests) == ("compiled", "none")
    assert "none was executed" in outcome.detail
    assert len(list(run.passes())) > 20
    assert not [one for one in run.records(NotCovered) if "launched no kernel" in one.what]


@pytest.mark.soak
def test_a_kernel_that_cannot_be_executed_is_refused_with_compile_only_as_remedy(tmp_path: Path) -> None:
    done = tracing("run", str(DATA / "gluon_case.py"), runs=tmp_path)

    assert done.returncode == 2
    assert "the Gluon kernel scaled can be compiled but not executed without a GPU" in done.stderr
    assert "tracing run --compile-only" in done.stderr
    assert f"`tracing show {tmp_path}/gluon_case-" in done.stderr


@pytest.mark.parametrize("option", [("--keep-outputs",), ("--time",), ("--hash-fn", "f.py:f")])
def test_compile_only_refuses_options_that_need_values(option: tuple[str, ...], tmp_path: Path) -> None:
    done = tracing("run", str(DATA / "gluon_case.py"), "--compile-only", *option, runs=tmp_path)

    assert done.returncode == 2
    assert option[0] in done.stderr and "--compile-only executes none" in done.stderr


def test_comparisons_in_the_program_succeed_if_nothing_was_computed() -> None:
    a, b = torch.zeros(2), torch.ones(2)
    with virtual_gpu(execute=False):
        add_one[(1,)](a, 2, BLOCK=2)
        torch.testing.assert_close(a, b)
        np.testing.assert_allclose(a.numpy(), b.numpy())
        assert torch.allclose(a, b) and torch.equal(a, b)

    assert not a.any()
    assert not torch.allclose(a, b)


class Overridden(threading.Thread):
    """A thread that calls a function in a `run` of its own."""

    def __init__(self, target: Callable[[], None]) -> None:
        super().__init__()
        self.called = target

    def run(self) -> None:
        """Call the function."""
        self.called()


@pytest.mark.parametrize("thread", [threading.Thread, Overridden])
def test_threads_of_the_program_make_tensors_on_the_device(thread: Any) -> None:
    devices: list[torch.device] = []
    with virtual_gpu("sm_90"):
        work = thread(target=lambda: devices.append(torch.ones(3).cuda().device))
        work.start()
        work.join()

    assert devices == [torch.device("cuda:0")]


def test_the_traceback_of_a_thread_is_as_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise RuntimeError("in a thread")

    def frames() -> list[str]:
        seen: list[threading.ExceptHookArgs] = []
        monkeypatch.setattr(threading, "excepthook", seen.append)
        work = threading.Thread(target=fails)
        work.start()
        work.join()
        return [frame.name for frame in traceback.extract_tb(seen[0].exc_traceback)]

    without = frames()
    with virtual_gpu("sm_90"):
        assert frames() == without


def test_compiled_code_that_enters_a_function_mode_keeps_the_device() -> None:
    class Own(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    @torch.compile(backend="eager")
    def doubled(x: torch.Tensor) -> torch.Tensor:
        with Own():
            return x * 2

    with virtual_gpu("sm_90"):
        doubled(torch.ones(3, device="cuda"))

        assert str(torch.ones(3, device="cuda").device) == "cuda:0"


@pytest.mark.parametrize("reverse", [False, True])
def test_a_pointwise_associative_scan_is_a_kernel_whose_results_are_eager_s(
    reverse: bool, tmp_path: Path
) -> None:
    def combine(
        a: tuple[torch.Tensor, torch.Tensor], b: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return a[0] * b[0], a[1] * b[0] + b[1]

    def scanned(mode: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = associative_scan(combine, (x, y), 0, reverse=reverse, combine_mode=mode)[1]
        return result

    with virtual_gpu("sm_90"), LaunchRecorder(store.create(tmp_path, INFO), "none") as recorder:
        x, y = torch.rand(2, 33, 10, device="cuda")
        result = torch.compile(scanned)("pointwise", x, y)

    assert recorder.count >= 1  # with `reverse`, another one copies the result
    torch.testing.assert_close(result, scanned("generic", x, y))
