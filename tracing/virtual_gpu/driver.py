"""What Triton asks of a driver and of a device, answered without either."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch._dynamo
import triton.testing
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from tracing import interpreter
from tracing.errors import Problem
from tracing.patch import replaced
from tracing.virtual_gpu.chips import CHIPS, Chip, device_index


@contextmanager
def installed(name: str, target: GPUTarget) -> Iterator[None]:
    """Inside, Triton compiles for a target and executes launches; raises Problem if it does so already."""
    if isinstance(driver._active, _Driver):
        found = f"a virtual GPU ({driver._active.name}) is active already"
        raise Problem(found, "leave it before entering another")
    with ExitStack() as stack:
        stack.callback(interpreter.forget)
        # `active` would look for a GPU; None, not looked for yet, is restored as None.
        stack.callback(driver.set_active, driver._active)
        driver.set_active(_Driver(name, target))
        stack.enter_context(interpreter.compiles_wait())
        # triton.autotune(warmup=..., rep=...) does not ask the driver for a benchmarker.
        for benchmark in ("do_bench", "do_bench_cudagraph"):
            stack.enter_context(replaced(triton.testing, benchmark, _benchmark))
        yield


class _Utilities:
    """What Triton asks of the device to load a kernel: here it only has to fit."""

    def __init__(self, chip: Chip) -> None:
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


class _Thread(threading.local):
    benchmarking = False  # launches are compiled and checked against the target, not executed


_thread = _Thread()


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
        if not _thread.benchmarking:
            interpreter.execute(self.source, arguments, (x, y, z))
        if leave is not None:
            leave(metadata)


class _Driver:
    """The part of triton.backends.driver.DriverBase that compiling and launching touch."""

    launcher_cls = _Launcher

    def __init__(self, name: str, target: GPUTarget) -> None:
        self.name = name
        self.target = target
        self.utils = _Utilities(CHIPS[name])

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return device_index(self.name)

    def set_current_device(self, device: int) -> None: ...

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return torch.cpu

    def get_benchmarker(self) -> Callable[..., Any]:
        return _benchmark


def _benchmark(call: Callable[[], object], *arguments: Any, quantiles: Any = None, **options: Any) -> Any:
    # triton.autotune keeps its benchmarker for good, also after the virtual GPU is gone.
    if not isinstance(driver._active, _Driver):
        return driver.active.get_benchmarker()(call, *arguments, quantiles=quantiles, **options)
    # Launching finds configurations that do not fit; equal times let the first of the others win.
    with replaced(_thread, "benchmarking", True):
        call()
    return 1.0 if quantiles is None else [1.0] * len(quantiles)
