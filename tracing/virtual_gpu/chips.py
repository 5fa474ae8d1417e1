"""The GPUs that kernels can be compiled for on a machine without a GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tracing.errors import Problem
from tracing.upstream.triton.backends import GPUTarget

DEFAULT_TARGET = "sm_90"


@dataclass(frozen=True, slots=True)
class Chip:
    """The properties that determine which configurations fit, and which code Inductor generates.

    Clocks and memory feed performance models by which autotuners choose what to try.
    """

    processors: int  # streaming multiprocessors, compute units
    shared_bytes: int  # that one program may use
    mhz: int  # of a processor
    memory_mhz: int
    memory_bits: int  # width of the bus
    memory_gib: int
    threads: int = 2048  # resident on one processor
    registers: int = 65536  # of 32 bits, on one processor


# Not yet checked against the vendors' documents, which are NVIDIA's CUDA C++ programming guide (technical
# specifications per compute capability), AMD's instruction set architecture guides, and the data sheets of
# T4, A100, A10, L40S, H100 SXM, B200, B300, Thor, RTX 5090 and GB10, and of MI250 (one die), MI300X, MI355X,
# RX 7900 XTX, RX 9060 XT and RX 9070 XT. They decide which configuration fits, never what a kernel computes.
CHIPS = {
    "sm_75": Chip(40, 65536, 1590, 5001, 256, 16, threads=1024),
    "sm_80": Chip(108, 166912, 1410, 1593, 5120, 80),
    "sm_86": Chip(72, 101376, 1695, 6251, 384, 24, threads=1536),
    "sm_89": Chip(142, 101376, 2520, 9001, 384, 48, threads=1536),
    "sm_90": Chip(132, 232448, 1980, 2619, 5120, 80),
    "sm_100": Chip(148, 232448, 1965, 3996, 8192, 180),
    "sm_103": Chip(160, 232448, 1965, 3996, 8192, 288),
    "sm_110": Chip(20, 232448, 1575, 4266, 256, 128, threads=1536),
    "sm_120": Chip(170, 101376, 2407, 14001, 512, 32, threads=1536),
    "sm_121": Chip(48, 101376, 2418, 4266, 256, 128, threads=1536),
    "gfx90a": Chip(104, 65536, 1700, 1600, 4096, 64, registers=131072),
    "gfx942": Chip(304, 65536, 2100, 1300, 8192, 192, registers=131072),
    "gfx950": Chip(256, 163840, 2400, 2000, 8192, 288, registers=131072),
    "gfx1100": Chip(96, 65536, 2499, 1250, 384, 24, registers=98304),
    "gfx1200": Chip(32, 65536, 3130, 1258, 128, 16, registers=98304),
    "gfx1201": Chip(64, 65536, 2970, 1258, 256, 16, registers=98304),
}


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
