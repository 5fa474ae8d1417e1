"""The launches of a run and their records, on the virtual GPU, for every kind of launcher."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO
from recorded.launches import add, added, raising, read, recorded
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from triton.compiler import CompiledKernel
from triton.runtime.autotuner import Autotuner
from triton.runtime.errors import InterpreterError
from triton.runtime.interpreter import InterpretedFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from tracing import DebugMode, TritonKernelCall, store
from tracing.digest.host import digest
from tracing.model import KeptTensor, KernelArg, KernelLaunch
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep, load
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


def tensors(launch: KernelLaunch) -> list[KernelArg]:
    return [arg for arg in launch.args if arg.tensor]


@triton.autotune([triton.Config({"BLOCK": size}) for size in (128, 256)], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def twice_kernel(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at) * 2)


@triton.jit
def scaled_kernel(x_ptr, y_ptr, scale, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at).to(tl.float32) * scale)


# ---- launches ----


def test_an_inductor_kernel_is_recorded_with_its_grid_roles_values_and_digests(
    gpu: None, tmp_path: Path
) -> None:
    x = torch.randn(100)
    (launch,) = recorded(tmp_path, lambda: torch.compile(torch.sin)(x))
    source, result, count = launch.args

    assert (launch.kernel_name, launch.grid) == ("triton_poi_fused_sin_0", (1, 1, 1))
    assert (source.declared, result.declared, count.value) == ("in", "out", 100)
    assert (source.before, source.modified) == (digest(x), False)
    assert (result.after.bits, result.modified) == (digest(torch.compile(torch.sin)(x)).bits, True)


def test_arguments_keep_their_names_next_to_a_constant(gpu: None, tmp_path: Path) -> None:
    x = torch.ones(100)
    (launch,) = recorded(tmp_path, lambda: added(x))

    assert [(arg.name, arg.declared, arg.value) for arg in launch.args] == [
        ("x_ptr", "in", None),
        ("y_ptr", "out", None),
        ("n", "none", 100),
    ]
    assert (launch.grid, launch.kernel.constants["BLOCK"]) == ((2, 1, 1), "64")


def test_a_kernel_has_its_hash_target_and_stages(gpu: None, tmp_path: Path) -> None:
    (launch,) = recorded(tmp_path, lambda: added(torch.ones(100)))

    assert (launch.kernel.kind, launch.kernel.target, launch.kernel.num_warps) == ("triton", "cuda:90", 4)
    assert {"ttir", "ttgir", "llir", "ptx", "cubin"} <= set(launch.kernel.stages)


@triton.jit
def product_kernel(x, y, out, n, SIZE: tl.constexpr):
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for k in tl.range(0, n, SIZE, warp_specialize=True):
        total = tl.dot(x.load([0, k]), y.load([k, 0]), total)
    out.store([0, 0], total.to(tl.float16))


def test_a_kernel_has_the_num_warps_of_its_launch_without_those_of_warp_specialization(
    gpu: None, tmp_path: Path
) -> None:
    x, y, out = (TensorDescriptor.from_tensor(torch.ones(64, 64).half(), [64, 64]) for _ in range(3))
    (launch,) = recorded(tmp_path, lambda: product_kernel[(1,)](x, y, out, 64, SIZE=64, num_warps=4))
    kernel = launch.kernel

    assert (kernel.num_warps, kernel.options["num_warps"]) == (4, "4")


def test_benchmark_launches_of_an_autotuner_are_not_recorded(gpu: None, tmp_path: Path) -> None:
    x, y = torch.ones(300), torch.empty(300)
    grid = lambda meta: (triton.cdiv(300, meta["BLOCK"]),)  # noqa: E731
    launches = recorded(tmp_path, lambda: [tuned_kernel[grid](x, y, 300) for _ in range(2)])

    assert [(launch.kernel_name, launch.grid) for launch in launches] == [("tuned_kernel", (3, 1, 1))] * 2
    assert all(launch.finished for launch in launches)


def test_launches_of_the_backward_pass_are_marked_as_such(gpu: None, tmp_path: Path) -> None:
    x = torch.randn(100, requires_grad=True)
    launches = recorded(tmp_path, lambda: torch.compile(lambda x: x.sin().sum())(x).backward())
    phases = [launch.phase for launch in launches]

    assert phases == sorted(phases, reverse=True)
    assert set(phases) == {"forward", "backward"}


@pytest.mark.parametrize("grid", [(np.int64(1),), (torch.tensor(1), 1), (1, 1, 1)])
@pytest.mark.parametrize("scale", [np.float64(0.125), 0.125])
def test_numbers_of_numpy_and_torch_are_recorded_as_pythons(
    gpu: None, tmp_path: Path, grid: Any, scale: float
) -> None:
    x, y = torch.ones(16), torch.empty(16)
    (launch,) = recorded(tmp_path, lambda: scaled_kernel[grid](x, y, scale, 16))

    assert launch.grid == (1, 1, 1)
    assert (type(launch.args[2].value), launch.args[2].value) == (float, 0.125)
    assert (y == 0.125).all()


@pytest.mark.parametrize("interpreted", [False, True])
def test_a_launch_with_a_float_in_its_grid_raises_and_is_not_recorded(
    gpu: None, tmp_path: Path, interpreted: bool
) -> None:
    kernel: Any = InterpretedFunction(twice_kernel.fn) if interpreted else twice_kernel
    x = torch.ones(16)

    def launches() -> None:
        with pytest.raises((TypeError, InterpreterError)):
            kernel[(16 / 16,)](x, 16)
        twice_kernel[(1,)](x, 16)

    (launch,) = recorded(tmp_path, launches)
    assert launch.grid == (1, 1, 1)


@pytest.mark.parametrize("dtype", [tl.float8e5, torch.float8_e5m2])
def test_a_reinterpreted_tensor_has_the_type_that_the_kernel_reads(
    gpu: None, tmp_path: Path, dtype: Any
) -> None:
    x, y = torch.arange(16.0).to(torch.float8_e5m2), torch.empty(16)
    wrapped = triton.reinterpret(x.view(torch.int8), dtype)
    (launch,) = recorded(tmp_path, lambda: scaled_kernel[(1,)](wrapped, y, 1.0, 16))

    (source, *_) = launch.args
    assert source.tensor is not None and source.tensor.dtype == "float8_e5m2"
    assert source.before == digest(x)
    assert torch.equal(y, x.float())


@triton.jit
def filled_kernel(x_ptr, SHAPE: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, SHAPE[1]), SHAPE[0])


def test_a_shape_that_is_a_constant_is_recorded_as_a_tuple(gpu: None, tmp_path: Path) -> None:
    x = torch.zeros(2, 8)
    (launch,) = recorded(tmp_path, lambda: filled_kernel[(1,)](x, x.shape))

    assert launch.kernel.constants["SHAPE"] == "(2, 8)"


def test_an_interpreted_kernel_is_recorded_with_its_accesses(tmp_path: Path) -> None:
    x, y = torch.ones(100), torch.zeros(100)
    (launch,) = recorded(tmp_path, lambda: InterpretedFunction(add)[(2,)](x, 64, y, 100))

    assert (launch.kernel.kind, launch.kernel_name, launch.grid) == ("interpreted", "add", (2, 1, 1))
    assert [(arg.name, arg.declared) for arg in launch.args][:2] == [("x_ptr", "in"), ("y_ptr", "out")]
    assert launch.args[1].after == digest(x + 1)


def test_roles_of_an_interpreted_kernel_are_those_of_each_launch(tmp_path: Path) -> None:
    x, kernel = torch.ones(100), InterpretedFunction(add)
    launches = recorded(tmp_path, lambda: [kernel[(2,)](x, 64, torch.zeros(100), n) for n in (100, 0)])

    assert [[arg.declared for arg in tensors(launch)] for launch in launches] == [
        ["in", "out"],
        ["none", "none"],
    ]


@pytest.mark.soak
def test_a_cpp_kernel_of_inductor_is_recorded(tmp_path: Path) -> None:
    x = torch.randn(100)
    torch._dynamo.reset()
    (launch,) = recorded(tmp_path, lambda: torch.compile(torch.cos)(x))

    assert (launch.kernel.kind, launch.kernel.target) == ("cpp", "cpu")
    assert [(arg.name, arg.declared) for arg in launch.args] == [("in_ptr0", "in"), ("out_ptr0", "out")]
    assert launch.args[0].before == digest(x)


# ---- writers of an input, and shared memory ----


def test_an_operator_that_wrote_an_input_is_named(gpu: None, tmp_path: Path) -> None:
    x = torch.zeros(8, 8)

    def program() -> None:
        torch.mm(torch.ones(8, 8), torch.ones(8, 8), out=x)
        added(x)
        x.copy_(torch.ones(8, 8))
        added(x)

    launches = recorded(tmp_path, program)

    assert [launch.args[0].writer for launch in launches] == ["aten::mm.out", "aten::copy_"]


def test_an_input_that_a_launch_wrote_has_no_operator_as_writer(gpu: None, tmp_path: Path) -> None:
    launches = recorded(tmp_path, lambda: added(added(torch.zeros(100))))

    assert [launch.args[0].writer for launch in launches] == ["aten::zeros", None]
    assert launches[0].args[1].storage == launches[1].args[0].storage


def test_an_operator_on_a_slice_is_not_the_writer_of_the_adjacent_slice(gpu: None, tmp_path: Path) -> None:
    x, columns = torch.zeros(200), torch.zeros(100, 2)

    def program() -> None:
        x[:100].fill_(1)
        columns[:, 0].fill_(1)
        for view in (x[:100], x[100:], x, columns[:, 0], columns[:, 1]):
            added(view, torch.empty(200))

    launches = recorded(tmp_path, program)
    fill = "aten::fill_.Scalar"

    assert [launch.args[0].writer for launch in launches] == [fill, None, fill, fill, None]


def test_a_launch_on_a_slice_keeps_the_writer_of_the_adjacent_slice(gpu: None, tmp_path: Path) -> None:
    x = torch.zeros(200)

    def program() -> None:
        x.fill_(1)
        added(torch.zeros(100), x[:100])
        for view in (x[:100], x[100:], x):
            added(view, torch.empty(200))

    launches = recorded(tmp_path, program)

    assert [launch.args[0].writer for launch in launches[1:]] == [None, "aten::fill_.Scalar", None]


@pytest.mark.soak
def test_reallocated_memory_has_no_writer(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        for _ in range(20):
            torch.zeros(1 << 16)
            added(torch.empty(1 << 16))

    assert {launch.args[0].writer for launch in recorded(tmp_path, program)} == {None}


def test_without_operators_no_writer_is_named(gpu: None, tmp_path: Path) -> None:
    (launch,) = recorded(tmp_path, lambda: added(torch.zeros(100)), operators="none")

    assert [arg.writer for arg in launch.args] == [None] * 3


def test_a_tensor_that_is_passed_twice_has_one_storage(gpu: None, tmp_path: Path) -> None:
    x = torch.ones(100)
    (launch,) = recorded(tmp_path, lambda: added(x, x))
    source, result, _ = launch.args

    assert source.storage == result.storage
    assert (source.modified, result.modified) == (True, True)


def test_views_of_one_tensor_share_its_storage_and_no_other(gpu: None, tmp_path: Path) -> None:
    x = torch.ones(200)
    first, second = recorded(tmp_path, lambda: [added(x[:100]), added(x[100:], x[:100])])

    assert first.args[0].storage == second.args[0].storage == second.args[1].storage
    assert first.args[1].storage != first.args[0].storage
    assert second.args[0].tensor.offset == 100


def test_generated_code_is_recorded_with_the_offsets_of_its_inputs_in_their_storages(
    gpu: None, tmp_path: Path
) -> None:
    x, compiled = torch.randn(300), torch.compile(torch.sin)
    launches = recorded(tmp_path, lambda: [compiled(x[at : at + 100]) for at in (0, 100, 200, 100)])
    sources = [launch.args[0] for launch in launches]

    assert [source.tensor.offset for source in sources if source.tensor] == [0, 100, 200, 100]
    assert len({source.storage for source in sources}) == 1
    assert [source.before for source in sources] == [digest(x[at : at + 100]) for at in (0, 100, 200, 100)]


def test_a_storage_has_the_address_and_the_size_of_the_whole_block(gpu: None, tmp_path: Path) -> None:
    x = torch.ones(300)
    writer = store.create(tmp_path, INFO)
    with LaunchRecorder(writer):
        added(x[100:], torch.empty(200))
    run = store.Run(writer.path)
    (launch,) = run.launches()
    storage = run.storages(run.processes()[0])[launch.args[0].storage]

    assert (storage.address, storage.nbytes) == (x.data_ptr(), 1200)


# ---- digests ----


def test_launches_are_recorded_without_digests_too(gpu: None, tmp_path: Path) -> None:
    launches = recorded(tmp_path, lambda: added(added(torch.ones(100))), "none")

    assert [(launch.kernel_name, launch.finished) for launch in launches] == [("add", False)] * 2
    assert not any(arg.before or arg.after for launch in launches for arg in launch.args)


def test_declared_digests_cover_inputs_before_and_outputs_after_the_launch(gpu: None, tmp_path: Path) -> None:
    (launch,) = recorded(tmp_path, lambda: added(torch.ones(100)), "declared")
    source, result, _ = launch.args

    assert (source.before, result.before) == (digest(torch.ones(100)), None)
    assert (source.modified, result.after) == (False, digest(torch.full((100,), 2.0)))


def test_all_digests_cover_every_tensor_before_and_modified_ones_after_the_launch(
    gpu: None, tmp_path: Path
) -> None:
    y = torch.zeros(100)
    (launch,) = recorded(tmp_path, lambda: added(torch.ones(100), y), "all")

    assert [arg.before for arg in tensors(launch)] == [digest(torch.ones(100)), digest(torch.zeros(100))]
    assert [arg.after for arg in tensors(launch)] == [digest(torch.ones(100)), digest(y)]


def test_a_buffer_that_is_rewritten_with_its_own_bits_is_written_and_not_modified(
    gpu: None, tmp_path: Path
) -> None:
    y = torch.full((100,), 2.0)
    (launch,) = recorded(tmp_path, lambda: added(torch.ones(100), y))

    assert (launch.args[1].declared, launch.args[1].modified) == ("out", False)
    assert launch.args[1].after == digest(y)


def test_a_buffer_that_is_changed_in_place_has_both_digests(gpu: None, tmp_path: Path) -> None:
    x = torch.ones(64)
    (launch,) = recorded(tmp_path, lambda: twice_kernel[(1,)](x, 64), "declared")
    (arg,) = launch.args

    assert (arg.declared, arg.before, arg.after) == ("in_out", digest(torch.ones(64)), digest(x))


def test_strided_tensors_are_digested_in_logical_order(gpu: None, tmp_path: Path) -> None:
    x = torch.randn(8, 8)
    (launch,) = recorded(tmp_path, lambda: added(x.t(), torch.empty(8, 8)))

    assert launch.args[0].tensor.stride == (1, 8)
    assert launch.args[0].before == digest(x.t().contiguous())


# ---- next to other tools ----


def test_a_recorder_inside_of_debug_mode_sees_the_same_launches(gpu: None, tmp_path: Path) -> None:
    with DebugMode() as debug_mode:
        launches = recorded(tmp_path, lambda: torch.compile(torch.tan)(added(torch.ones(100))))
    calls = [op for op in debug_mode.operators if isinstance(op, TritonKernelCall)]

    assert [launch.kernel_name for launch in launches] == [call.kernel_name for call in calls]
    assert len(calls) == 2
    assert all(launch.finished for launch in launches)


def test_debug_mode_inside_of_a_recorder_sees_the_same_launches(gpu: None, tmp_path: Path) -> None:
    debug_mode = DebugMode()

    def program() -> None:
        with debug_mode:
            torch.compile(torch.tan)(added(torch.ones(100)))

    launches = recorded(tmp_path, program)
    calls = [op for op in debug_mode.operators if isinstance(op, TritonKernelCall)]

    assert [launch.kernel_name for launch in launches] == [call.kernel_name for call in calls]
    assert len(calls) == 2


def test_two_recorders_record_the_same(gpu: None, tmp_path: Path) -> None:
    outer, inner = (store.create(tmp_path, INFO) for _ in range(2))
    with LaunchRecorder(outer), LaunchRecorder(inner):
        torch.compile(torch.exp)(added(torch.ones(100)))

    assert len(read(outer)) == 2
    assert read(outer) == read(inner)


def other_tool(seen: list[str]) -> tuple[Callable[[Any], None], Callable[[Any], None]]:
    return lambda metadata: seen.append("enter"), lambda metadata: seen.append("exit")


def test_launch_hooks_of_another_tool_that_came_first_fire_and_survive(gpu: None, tmp_path: Path) -> None:
    seen: list[str] = []
    enter, leave = other_tool(seen)
    triton.knobs.runtime.launch_enter_hook.add(enter)
    triton.knobs.runtime.launch_exit_hook.add(leave)
    try:
        launches = recorded(tmp_path, lambda: added(torch.ones(100)))
        added(torch.ones(100))
    finally:
        triton.knobs.runtime.launch_enter_hook.remove(enter)
        triton.knobs.runtime.launch_exit_hook.remove(leave)

    assert seen == ["enter", "exit"] * 2
    assert len(launches) == 1


def test_launch_hooks_that_another_tool_adds_meanwhile_fire_and_survive(gpu: None, tmp_path: Path) -> None:
    seen: list[str] = []
    enter, leave = other_tool(seen)

    def program() -> None:
        triton.knobs.runtime.launch_enter_hook.add(enter)
        triton.knobs.runtime.launch_exit_hook.add(leave)
        added(torch.ones(100))

    try:
        launches = recorded(tmp_path, program)
        added(torch.ones(100))
    finally:
        triton.knobs.runtime.launch_enter_hook.remove(enter)
        triton.knobs.runtime.launch_exit_hook.remove(leave)

    assert seen == ["enter", "exit"] * 2
    assert [launch.finished for launch in launches] == [True]


# ---- exceptions, and restored hooks ----


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_launch_that_raises_leaves_the_others_complete(gpu: None, tmp_path: Path, failing: int) -> None:
    def program() -> None:
        for index in range(3):
            if index != failing:
                added(torch.ones(100))
                continue
            triton.knobs.runtime.launch_enter_hook.add(raising)
            with pytest.raises(ZeroDivisionError):
                added(torch.ones(100))
            triton.knobs.runtime.launch_enter_hook.remove(raising)

    launches = recorded(tmp_path, program)

    assert [launch.index for launch in launches] == [0, 1, 2]
    assert [launch.finished for launch in launches] == [index != failing for index in range(3)]


def test_an_autotuners_first_launch_that_raises_is_not_confused_with_another(
    gpu: None, tmp_path: Path
) -> None:
    def program() -> None:
        torch.compile(torch.sin)(torch.ones(4))
        triton.knobs.runtime.launch_enter_hook.add(raising)
        with pytest.raises(ZeroDivisionError):
            torch.compile(lambda x: torch.softmax(x, -1))(torch.randn(8, 3000))
        triton.knobs.runtime.launch_enter_hook.remove(raising)

    launches = recorded(tmp_path, program)

    assert [launch.kernel_name for launch in launches].count("triton_poi_fused_sin_0") == 1


def test_an_interpreted_kernel_that_raises_leaves_the_others_complete(tmp_path: Path) -> None:
    def program() -> None:
        for block in (64, 63, 64):  # tl.arange takes powers of two
            try:
                InterpretedFunction(add)[(2,)](torch.ones(100), block, torch.ones(100), 100)
            except Exception as error:
                raised.append(error)

    raised: list[Exception] = []
    launches = recorded(tmp_path, program)

    assert len(raised) == 1
    assert [launch.finished for launch in launches if launch.args[1].modified] == [True, True]


def hooked() -> list[object]:
    """The attributes and hooks of torch and Triton that a recorder replaces."""
    points = (
        (CachingAutotuner, "run"),
        (CachingAutotuner, "bench"),
        (CompiledKernel, "launch_metadata"),
        (InterpretedFunction, "run"),
        (Autotuner, "_bench"),
        (AsyncCompile, "wait"),
        (torch.cuda.CUDAGraph, "replay"),
    )
    knobs = triton.knobs.runtime
    calls = [list(hook.calls) for hook in (knobs.launch_enter_hook, knobs.launch_exit_hook)]
    return [*(getattr(owner, name) for owner, name in points), *calls]


def test_everything_is_restored_afterwards(gpu: None, tmp_path: Path) -> None:
    before = hooked()
    with LaunchRecorder(store.create(tmp_path, INFO)):
        inside = hooked()
        added(torch.ones(100))

    assert hooked() == before
    assert all(a != b for a, b in zip(before[:-2], inside[:-2], strict=True))


def test_everything_is_restored_after_an_exception(gpu: None, tmp_path: Path) -> None:
    before = hooked()
    with pytest.raises(ZeroDivisionError), LaunchRecorder(store.create(tmp_path, INFO)):
        added(torch.ones(100))
        raise ZeroDivisionError

    assert hooked() == before


def test_launches_after_the_recording_are_not_recorded(gpu: None, tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    with LaunchRecorder(writer) as recorder:
        added(torch.ones(100))
    added(torch.ones(100))

    assert (recorder.count, len(read(writer))) == (1, 1)


def test_inputs_and_outputs_of_a_launch_are_kept(tmp_path: Path) -> None:
    x = torch.rand(100)
    writer = store.create(tmp_path, INFO)
    with virtual_gpu(), LaunchRecorder(writer, keep=Keep(inputs=True)):
        y = torch.compile(lambda x: x.sin() * 2)(x)

    run = store.Run(writer.path)
    kept = {line.side: load(run.bytes(line.blob)) for line in run.records(KeptTensor)}

    assert torch.equal(kept["before"].view(100), x)
    assert torch.equal(kept["after"].view(100), y)
