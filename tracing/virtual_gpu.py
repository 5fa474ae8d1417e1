"""A Triton driver without a GPU: kernels are really compiled for a target and executed on CPU tensors.

Inside `virtual_gpu()` a program takes the path that it takes on a GPU machine: `torch.compile` with
Inductor's Triton kernels, `fn[grid](...)`, autotuners, `CompiledKernel.asm` down to the cubin, launch hooks
and their metadata. Two things differ: a launch is executed by Triton's interpreter, and nothing is measured,
so an autotuner takes its first configuration that fits the target. The values are right, there are no times.

This is the one place that knows which private parts of torch and Triton must answer for a device.

Caches: what Triton's cache holds afterwards are true kernels of the target. Inductor's graphs carry a cache
key tag of their own, and its kernels a device index that no machine has, so neither is taken for a real
device's, nor one target's for another's; autotuning results are not written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch._dynamo
import torch._inductor.config as inductor_config
import triton
import triton.language as tl
import triton.testing
from torch._dynamo.device_interface import CpuInterface
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.hints import DeviceProperties
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch.utils import _triton as torch_triton
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from tracing import interpreter
from tracing.errors import Problem
from tracing.interpreter import replaced

DEFAULT_TARGET = "sm_90"


@dataclass(frozen=True, slots=True)
class _Chip:
    processors: int  # streaming multiprocessors, compute units
    shared_bytes: int  # that one program may use
    threads: int = 2048  # resident on one processor
    registers: int = 65536  # of 32 bits, on one processor


# Not yet checked against the vendors' documents, which are NVIDIA's CUDA C++ programming guide (technical
# specifications per compute capability), AMD's instruction set architecture guides, and the data sheets of
# T4, A100, A10, L40S, H100 SXM, B200, B300, Thor, RTX 5090 and GB10, and of MI250 (one die), MI300X, MI355X,
# RX 7900 XTX, RX 9060 XT and RX 9070 XT. They decide which configuration fits, never what a kernel computes.
_CHIPS = {
    "sm_75": _Chip(40, 65536, threads=1024),
    "sm_80": _Chip(108, 166912),
    "sm_86": _Chip(72, 101376, threads=1536),
    "sm_89": _Chip(142, 101376, threads=1536),
    "sm_90": _Chip(132, 232448),
    "sm_100": _Chip(148, 232448),
    "sm_103": _Chip(160, 232448),
    "sm_110": _Chip(20, 232448, threads=1536),
    "sm_120": _Chip(170, 101376, threads=1536),
    "sm_121": _Chip(48, 101376, threads=1536),
    "gfx90a": _Chip(104, 65536, registers=131072),
    "gfx942": _Chip(304, 65536, registers=131072),
    "gfx950": _Chip(256, 163840, registers=131072),
    "gfx1100": _Chip(96, 65536, registers=98304),
    "gfx1200": _Chip(32, 65536, registers=98304),
    "gfx1201": _Chip(64, 65536, registers=98304),
}


def parse_target(text: str) -> GPUTarget:
    """The target that Triton calls by this name: sm_80, sm_90, sm_100, gfx942.

    Raises Problem for a name that is not in the table of known chips.
    """
    if text not in _CHIPS:
        found = f"unknown target {text!r}: known are {', '.join(_CHIPS)}"
        raise Problem(found, "use sm_90 for an H100, gfx942 for an MI300X")
    if number := re.fullmatch(r"sm_(\d+)", text):
        return GPUTarget("cuda", int(number[1]), 32)
    # CDNA (gfx9) runs 64 threads in lockstep, RDNA (gfx10 and later) 32.
    return GPUTarget("hip", text, 64 if text.startswith("gfx9") else 32)


@contextmanager
def virtual_gpu(target: str = DEFAULT_TARGET) -> Iterator[GPUTarget]:
    """Compile Triton kernels for `target` and execute them on CPU tensors, while active.

    target -- as for parse_target

    Everything that is patched is restored on exit, also after an exception. What torch.compile compiled
    before is compiled anew inside, and what it compiled inside is compiled anew afterwards.
    Cost: see tracing.interpreter.execute; keep shapes and grids small.
    Not covered: FlexAttention and GEMM templates, which Inductor does not emit for CPU tensors, and
    cooperative grids, whose programs wait for one another. Kernels are compiled in this process only.

    Raises Problem for an unknown target, and if a virtual GPU is active already.
    """
    parsed = parse_target(target)
    if isinstance(driver._active, _Driver):
        found = f"a virtual GPU ({driver._active.name}) is active already"
        raise Problem(found, "leave it before entering another")
    with ExitStack() as stack:
        stack.callback(interpreter.forget)
        _enter_triton(stack, _Driver(target, parsed))
        _enter_inductor(stack, target, parsed)
        yield parsed


# ---- Triton ----


class _Utilities:
    """What Triton asks of the device to load a kernel: here it only has to fit."""

    def __init__(self, chip: _Chip) -> None:
        self.chip = chip

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {
            "max_shared_mem": self.chip.shared_bytes,
            "multiprocessor_count": self.chip.processors,
            "max_num_regs": self.chip.registers,
            "warpSize": 32,
        }

    # Module, function, registers (None: unknown without the device), spilled registers, threads of a program.
    # A module would be unloaded by the driver active when the kernel is collected, perhaps a real one.
    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[None, int, None, int, int]:
        return None, 1, None, 0, 1024


class _Launcher:
    """Stands for the C launcher of a backend: enter hook, kernel, exit hook."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self.source = source

    # Dynamo would trace into the interpreter, as it is called in the frames of a compiled function.
    @torch._dynamo.disable  # type: ignore[untyped-decorator, unused-ignore]
    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: int,
        function: int,
        packed: Any,
        metadata: Any,
        enter: Callable[[Any], None] | None,
        leave: Callable[[Any], None] | None,
        *arguments: object,
    ) -> None:
        if enter is not None:
            enter(metadata)
        if not _Driver.benchmarking:
            interpreter.execute(self.source, arguments, (x, y, z))
        if leave is not None:
            leave(metadata)


class _Driver:
    """The part of triton.backends.driver.DriverBase that compiling and launching touch."""

    launcher_cls = _Launcher
    benchmarking = False  # launches are compiled and checked against the target, not executed

    def __init__(self, name: str, target: GPUTarget) -> None:
        self.name = name
        self.target = target
        self.utils = _Utilities(_CHIPS[name])

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return _device_index(self.name)

    def set_current_device(self, device: int) -> None: ...

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return torch.cpu

    def get_benchmarker(self) -> Callable[..., Any]:
        return _benchmark


def _device_index(name: str) -> int:
    # JITFunction.device_caches and Inductor's kernel sources are keyed by the index. No machine has so many
    # devices: no kernel of a virtual GPU is launched on a real one, or on a virtual one of another target.
    return 1 << 16 | list(_CHIPS).index(name)


def _benchmark(call: Callable[[], object], *arguments: Any, quantiles: Any = None, **options: Any) -> Any:
    # triton.autotune keeps its benchmarker for good, also after the virtual GPU is gone.
    if not isinstance(driver._active, _Driver):
        return driver.active.get_benchmarker()(call, *arguments, quantiles=quantiles, **options)
    # Launching finds configurations that do not fit; equal times let the first of the others win.
    with replaced(_Driver, "benchmarking", True):
        call()
    return 1.0 if quantiles is None else [1.0] * len(quantiles)


def _enter_triton(stack: ExitStack, virtual: _Driver) -> None:
    # `active` would look for a GPU; None, not looked for yet, is restored as None.
    stack.callback(driver.set_active, driver._active)
    driver.set_active(virtual)
    # triton.autotune(warmup=..., rep=...) does not ask the driver for a benchmarker.
    for name in ("do_bench", "do_bench_cudagraph"):
        stack.enter_context(replaced(triton.testing, name, _benchmark))


# ---- Inductor ----


class _Interface(CpuInterface):
    """The CPU, answering what a generated kernel's launcher asks of a GPU."""

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def exchange_device(device: int) -> int:
        return 0

    @staticmethod
    def maybe_exchange_device(device: int) -> int:
        return 0

    @staticmethod
    def get_raw_stream(device: int) -> int:
        return 0

    @staticmethod
    def synchronize(device: Any = None) -> None: ...


_SETTINGS = {
    "cpu_backend": "triton",
    "compile_threads": 1,  # a worker process has no virtual GPU
    "autotune_local_cache": False,
    "autotune_remote_cache": False,
    "use_static_cuda_launcher": False,  # it launches through the CUDA driver and knows no hooks
}


def _enter_inductor(stack: ExitStack, name: str, target: GPUTarget) -> None:
    _forget_compiled(stack)
    stack.enter_context(inductor_config.patch(_SETTINGS))
    # Graphs of the virtual GPU are stored beside others of CPU tensors: without a tag they are the same.
    tag = f"{torch.compiler.config.cache_key_tag}virtual-{name}"
    stack.enter_context(torch.compiler.config.patch(cache_key_tag=tag))  # type: ignore[attr-defined]
    # It looks for devices; without one, Dynamo would trace into the launch of a user's kernel.
    stack.enter_context(replaced(torch_triton, "has_triton", lambda **options: True))
    # torch 2.15 asks it before it writes the call of a user's kernel; earlier versions have no such question.
    available = staticmethod(lambda device=None: None)
    stack.enter_context(replaced(CpuInterface, "raise_if_triton_unavailable", available))
    properties = _device_properties(name, target)
    # Inductor chooses its code by the properties of the tensors' device; here it must see the target's.
    stack.enter_context(replaced(DeviceProperties, "create", classmethod(lambda cls, device: properties)))
    # Generated code and its autotuner would replace the driver, or complain that there is none.
    for name_of_setter in ("set_driver_to_gpu", "set_driver_to_cpu"):
        stack.enter_context(replaced(triton_helpers, name_of_setter, lambda: None))
    stack.enter_context(replaced(CachingAutotuner, "get_device_interface", lambda self: _Interface))
    # Equal times: the first configuration wins, without a launch.
    stack.enter_context(replaced(CachingAutotuner, "bench", lambda self, launcher, *args, **kwargs: 1.0))


def _device_properties(name: str, target: GPUTarget) -> DeviceProperties:
    chip = _CHIPS[name]
    major = target.arch // 10 if target.backend == "cuda" else int(name[3:-2])
    return DeviceProperties(
        type=target.backend,
        index=_device_index(name),
        multi_processor_count=chip.processors,
        cc=target.arch,
        major=major,
        regs_per_multiprocessor=chip.registers,
        max_threads_per_multi_processor=chip.threads,
        max_threads_per_block=1024,
        warp_size=target.warp_size,
    )


def _forget_compiled(stack: ExitStack) -> None:
    # Dynamo's guards do not see the driver: code compiled for the CPU would run inside, and ours afterwards.
    # What torch finds out about the driver it keeps for the process, and puts into the keys of kernels.
    answers = (torch_triton.has_triton, torch_triton.triton_backend, torch_triton.triton_hash_with_backend)
    for clear in (torch._dynamo.reset, *(answer.cache_clear for answer in answers)):
        clear()
        stack.callback(clear)


# ---- does this torch and Triton pair work? ----


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _double_plus_one(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * 2 + 1, mask=offsets < n)


def self_test() -> list[str]:
    """One line for each thing that does not work with this torch and this Triton; empty if all is well.

    Compiles three small kernels: some 10 s with cold caches.
    """
    checks = (_check_direct_launch, _check_compiled, _check_restored)
    return [
        f"{check.__name__.removeprefix('_check_')}: {found}" for check in checks if (found := _failure(check))
    ]


def _failure(check: Callable[[], str]) -> str:
    try:
        return check()
    except Exception as error:  # whatever a private interface does after an upgrade is the answer here
        return f"{type(error).__name__}: {error}"


def _check_direct_launch() -> str:
    x = torch.randn(100, dtype=torch.bfloat16)
    y = torch.empty_like(x)
    with virtual_gpu():
        kernel = _double_plus_one[(2,)](x, y, 100, BLOCK=64)
    if "cubin" not in kernel.asm:
        return f"compiled to {', '.join(kernel.asm)}, not to a cubin"
    return "" if torch.equal(y, x * 2 + 1) else "bfloat16 results differ from torch's"


def _check_compiled() -> str:
    launched: list[object] = []
    x = torch.randn(8, 40)
    with virtual_gpu():
        triton.knobs.runtime.launch_exit_hook.add(launched.append)
        try:
            actual = torch.compile(lambda x: torch.softmax(x, -1).exp())(x)
        finally:
            triton.knobs.runtime.launch_exit_hook.remove(launched.append)
    if not launched:
        return "torch.compile launched no Triton kernel that calls the launch hooks"
    return (
        "" if torch.allclose(actual, torch.softmax(x, -1).exp(), atol=1e-6) else "results differ from eager"
    )


def _check_restored() -> str:
    before = inductor_config.cpu_backend, driver._active, vars(CachingAutotuner)["bench"]
    with virtual_gpu():
        pass
    after = inductor_config.cpu_backend, driver._active, vars(CachingAutotuner)["bench"]
    return "" if before == after else "the patches were not undone"
