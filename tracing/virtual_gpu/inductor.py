"""Let Inductor generate a target's Triton kernels for tensors on the CPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tracing.model.chips import CHIPS
from tracing.upstream.inductor.autotuner import not_measured
from tracing.upstream.inductor.compiler import first_template_taken, packages_of_cpp, without_cpp_wrapper
from tracing.upstream.inductor.config import MEASURE_FUSIONS, settings_changed_everywhere
from tracing.upstream.inductor.device import driver_forgotten, host_is_gpu
from tracing.upstream.inductor.gpu_templates import templates_on_host
from tracing.upstream.triton.backends import GPUTarget
from tracing.virtual_gpu.benchmarks import FIRST_IS_TAKEN
from tracing.virtual_gpu.chips import capability, device_index

_SETTINGS = {
    "cpu_backend": "triton",
    "compile_threads": 1,  # a worker process has no virtual GPU
    "cpp.fallback_scatter_reduce_sum": False,  # to the CPU's operator, if torch has several threads
    "cpp.weight_prepack": False,  # of frozen weights, for products that a GPU has no operator for
    "autotune_local_cache": False,
    "autotune_remote_cache": False,
    MEASURE_FUSIONS: False,  # the code that measures a fusion is none for tensors on the CPU
    "use_static_cuda_launcher": False,  # it launches through the CUDA driver and knows no hooks
}


@contextmanager
def installed(name: str, target: GPUTarget) -> Iterator[None]:
    """While active, torch.compile generates and launches a target's Triton kernels for tensors on the CPU."""
    with ExitStack() as stack:
        stack.enter_context(driver_forgotten())
        # Without a tag, graphs of the virtual GPU would have the keys of graphs for CPU tensors.
        stack.enter_context(settings_changed_everywhere(_SETTINGS, f"virtual-{name}"))
        stack.enter_context(host_is_gpu(**_properties(name, target)))
        processors = CHIPS[name].processors
        stack.enter_context(templates_on_host(target.backend, capability(name, target), processors))
        stack.enter_context(not_measured(_noted()))
        stack.enter_context(first_template_taken())
        stack.enter_context(packages_of_cpp())
        stack.enter_context(without_cpp_wrapper(_once("the C++ wrapper is off on a virtual GPU")))
        yield


def _once(note: str) -> Callable[[], None]:
    noted: list[str] = []

    def say() -> None:
        if note not in noted:
            noted.append(note)
            print(f"tracing: {note}", file=sys.stderr)

    return say


def _noted() -> Callable[[str, int], None]:
    noted: set[str] = set()

    def passed_over(kernel: str, count: int) -> None:
        if kernel not in noted:
            noted.add(kernel)
            are = "is" if count == 1 else "are"
            note = f"{kernel}: {count} of its configurations {are} compiled and not executed"
            print(f"tracing: {note}, {FIRST_IS_TAKEN}", file=sys.stderr)

    return passed_over


def _properties(name: str, target: GPUTarget) -> dict[str, Any]:
    chip = CHIPS[name]
    major = target.arch // 10 if target.backend == "cuda" else int(name[3:-2])
    return dict(
        type=target.backend,
        index=device_index(name),
        multi_processor_count=chip.processors,
        cc=target.arch,
        major=major,
        regs_per_multiprocessor=chip.registers,
        max_threads_per_multi_processor=chip.threads,
        max_threads_per_block=1024,
        warp_size=target.warp_size,
    )
