"""A driver for Triton that needs no device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from tracing import interpreter
from tracing.errors import Problem
from tracing.interpreter import trials
from tracing.interpreter.builder import not_executable
from tracing.model.chips import CHIPS
from tracing.upstream.torch.dynamo import untraced
from tracing.upstream.triton.backends import GPUTarget
from tracing.upstream.triton.driver import active_driver, benchmarker, driven_by
from tracing.upstream.triton.jit import IRSource
from tracing.virtual_gpu import benchmarks
from tracing.virtual_gpu.binary import resources
from tracing.virtual_gpu.chips import device_index
from tracing.virtual_gpu.placement import DEVICE
from tracing.virtual_gpu.streams import Stream

_LONGEST, _WIDEST = (1 << 31) - 1, (1 << 16) - 1  # programs of a grid: in x, in y and z


def is_active() -> bool:
    """True if a virtual GPU is installed."""
    return isinstance(active_driver(), _Driver)


@contextmanager
def installed(name: str, target: GPUTarget, *, execute: bool) -> Iterator[None]:
    """While active, Triton compiles for a target and, with `execute`, executes launches.

    Raises Problem if it does so already.
    """
    if is_active():
        problem = f"a virtual GPU ({active_driver().name}) is active already"
        raise Problem(problem, "leave it before entering another")
    with ExitStack() as stack:
        stack.callback(interpreter.forget)
        stack.enter_context(driven_by(_Driver(name, target, execute)))
        stack.enter_context(interpreter.compiles_wait())
        stack.enter_context(
            benchmarks.installed(lambda: isinstance(active_driver(), _Driver), execute=execute)
        )
        yield


class _Utilities:
    """The functions with which Triton loads a kernel: only its resources are checked."""

    def __init__(self, name: str, target: GPUTarget) -> None:
        self.name = name
        self.target = target

    def get_device_properties(self, device: int | None) -> dict[str, Any]:
        chip, amd = CHIPS[self.name], self.target.backend == "hip"
        answers: dict[str, Any] = {
            "max_shared_mem": chip.shared_bytes,
            "multiprocessor_count": chip.processors,
            # HIP counts half of CDNA's registers: the others belong to its matrix units
            "max_num_regs": chip.registers // 2 if self.name.startswith("gfx9") else chip.registers,
            "warpSize": self.target.warp_size,
            "sm_clock_rate": chip.mhz * 1000,
            "mem_clock_rate": chip.memory_mhz * 1000,
            "mem_bus_width": chip.memory_bits,
        }
        if amd:
            answers |= {"arch": self.name, "max_threads_per_sm": chip.threads, "cooperativeLaunch": 0}
        return answers

    # Module, function, registers (None: the binary does not say), spilled registers, threads of a program.
    # A module would be unloaded by the driver active when the kernel is collected, perhaps a real one.
    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[None, int, int | None, int, int]:
        used = resources(kernel)
        return None, 1, used.registers, used.spills, used.threads

    def set_printf_fifo_size(self, size: int) -> None: ...


class _Launcher:
    """Replaces the C launcher of a backend: enter hook, kernel, exit hook."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self.source = source
        self.checks = {name: bool(getattr(metadata, name, False)) for name in ("debug", "sanitize_overflow")}

    # Dynamo would trace into the interpreter, as it is called in the frames of a compiled function.
    @untraced
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
        _require_possible((x, y, z))
        if enter is not None:
            enter(metadata)
        if active_driver().execute and not trials.trying():
            _require_source(self.source)
            interpreter.execute(self.source, arguments, (x, y, z), **self.checks)
        if leave is not None:
            leave(metadata)


def _require_source(source: Any) -> None:
    if isinstance(source, IRSource):
        raise not_executable("a kernel of which only IR is given", source.path)


def _require_possible(grid: tuple[int, int, int]) -> None:
    # as the drivers do, in their words; CUDA C++ Programming Guide, "Technical Specifications"
    driver = active_driver()
    hip = driver.target.backend == "hip"
    limits = (_LONGEST, _WIDEST + hip, _WIDEST + hip)
    if any(size > limit for size, limit in zip(grid, limits, strict=True)):
        raise RuntimeError(f"Triton Error [{'HIP' if hip else 'CUDA'}]: invalid argument")


class _Driver:
    """The part of triton.backends.driver.DriverBase that compiling and launching use."""

    launcher_cls = _Launcher

    def __init__(self, name: str, target: GPUTarget, execute: bool) -> None:
        self.name = name
        self.target = target
        self.execute = execute
        self.utils = _Utilities(name, target)

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return device_index(self.name)

    def set_current_device(self, device: int) -> None: ...

    def get_current_stream(self, device: int | None = None) -> int:
        return Stream.current.cuda_stream

    def get_active_torch_device(self) -> torch.device:
        return DEVICE

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_benchmarker(self) -> Callable[..., Any]:
        return _benchmark

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(0)

    def clear_cache(self, cache: object) -> None: ...


def _benchmark(call: Callable[[], object], *arguments: Any, **options: Any) -> Any:
    # triton.autotune keeps its benchmarker for good, also after the virtual GPU is gone.
    if not isinstance(active_driver(), _Driver):
        return benchmarker()(call, *arguments, **options)
    return benchmarks.tried(call, *arguments, **options)
