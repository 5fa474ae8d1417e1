"""The device of a target, as Triton, torch and Inductor ask for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tracing.errors import Problem
from tracing.model.chips import CHIPS
from tracing.upstream.triton.backends import GPUTarget


def parse_target(text: str) -> GPUTarget:
    """The target that Triton calls by this name: sm_80, sm_90, sm_100, gfx942.

    Raises Problem for a name that is not in the table of known chips.
    """
    if text not in CHIPS:
        problem = f"unknown target {text!r}: known are {', '.join(CHIPS)}"
        raise Problem(problem, "use sm_90 for an H100, gfx942 for an MI300X")
    if number := re.fullmatch(r"sm_(\d+)", text):
        return GPUTarget("cuda", int(number[1]), 32)
    # CDNA (gfx9) runs 64 threads in lockstep, RDNA (gfx10 and later) 32.
    return GPUTarget("hip", text, 64 if text.startswith("gfx9") else 32)


def device_index(name: str) -> int:
    """The index of a target's device, by which JITFunction.device_caches and Inductor's sources are keyed.

    It exceeds the number of devices of any machine, so no kernel of a virtual GPU is launched on a real GPU,
    or on a virtual GPU with another target.
    """
    return 1 << 16 | list(CHIPS).index(name)


def capability(name: str, target: GPUTarget) -> tuple[int, int]:
    """The result of torch.cuda.get_device_capability: (9, 0) for sm_90 and gfx90a, (9, 4) for gfx942."""
    if target.backend == "cuda":
        return target.arch // 10, target.arch % 10
    return int(name[3:-2]), int(name[-2])


@dataclass(frozen=True, slots=True)
class Properties:
    """The result of torch.cuda.get_device_properties."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    warp_size: int
    clock_rate: int  # kHz
    memory_clock_rate: int  # kHz
    memory_bus_width: int  # bits
    gcnArchName: str  # noqa: N815  (torch's name)
    max_threads_per_block: int = 1024
    L2_cache_size: int = 50 << 20
    is_integrated: bool = False
    is_multi_gpu_board: bool = False


def properties(name: str, target: GPUTarget) -> Properties:
    """The properties of a target's device, as torch names them."""
    chip = CHIPS[name]
    return Properties(
        f"virtual {name}",
        *capability(name, target),
        total_memory=chip.memory_gib << 30,
        multi_processor_count=chip.processors,
        max_threads_per_multi_processor=chip.threads,
        regs_per_multiprocessor=chip.registers,
        shared_memory_per_block=min(chip.shared_bytes, 48 << 10),
        shared_memory_per_block_optin=chip.shared_bytes,
        shared_memory_per_multiprocessor=chip.shared_bytes + 1024,
        warp_size=target.warp_size,
        clock_rate=chip.mhz * 1000,
        memory_clock_rate=chip.memory_mhz * 1000,
        memory_bus_width=chip.memory_bits,
        gcnArchName="" if target.backend == "cuda" else name,
    )
