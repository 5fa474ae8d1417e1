"""The GPUs that kernels can be compiled for where there is none."""

from __future__ import annotations

import re
from dataclasses import dataclass

from triton.backends.compiler import GPUTarget

from tracing.errors import Problem

DEFAULT_TARGET = "sm_90"


@dataclass(frozen=True, slots=True)
class Chip:
    """What decides which configuration of a kernel fits, and which code Inductor writes."""

    processors: int  # streaming multiprocessors, compute units
    shared_bytes: int  # that one program may use
    threads: int = 2048  # resident on one processor
    registers: int = 65536  # of 32 bits, on one processor


# Not yet checked against the vendors' documents, which are NVIDIA's CUDA C++ programming guide (technical
# specifications per compute capability), AMD's instruction set architecture guides, and the data sheets of
# T4, A100, A10, L40S, H100 SXM, B200, B300, Thor, RTX 5090 and GB10, and of MI250 (one die), MI300X, MI355X,
# RX 7900 XTX, RX 9060 XT and RX 9070 XT. They decide which configuration fits, never what a kernel computes.
CHIPS = {
    "sm_75": Chip(40, 65536, threads=1024),
    "sm_80": Chip(108, 166912),
    "sm_86": Chip(72, 101376, threads=1536),
    "sm_89": Chip(142, 101376, threads=1536),
    "sm_90": Chip(132, 232448),
    "sm_100": Chip(148, 232448),
    "sm_103": Chip(160, 232448),
    "sm_110": Chip(20, 232448, threads=1536),
    "sm_120": Chip(170, 101376, threads=1536),
    "sm_121": Chip(48, 101376, threads=1536),
    "gfx90a": Chip(104, 65536, registers=131072),
    "gfx942": Chip(304, 65536, registers=131072),
    "gfx950": Chip(256, 163840, registers=131072),
    "gfx1100": Chip(96, 65536, registers=98304),
    "gfx1200": Chip(32, 65536, registers=98304),
    "gfx1201": Chip(64, 65536, registers=98304),
}


def parse_target(text: str) -> GPUTarget:
    """The target that Triton calls by this name: sm_80, sm_90, sm_100, gfx942.

    Raises Problem for a name that is not in the table of known chips.
    """
    if text not in CHIPS:
        found = f"unknown target {text!r}: known are {', '.join(CHIPS)}"
        raise Problem(found, "use sm_90 for an H100, gfx942 for an MI300X")
    if number := re.fullmatch(r"sm_(\d+)", text):
        return GPUTarget("cuda", int(number[1]), 32)
    # CDNA (gfx9) runs 64 threads in lockstep, RDNA (gfx10 and later) 32.
    return GPUTarget("hip", text, 64 if text.startswith("gfx9") else 32)


def device_index(name: str) -> int:
    """The index of a target's device, by which JITFunction.device_caches and Inductor's sources are keyed.

    No machine has so many devices: no kernel of a virtual GPU is launched on a real one, or on a virtual one
    of another target.
    """
    return 1 << 16 | list(CHIPS).index(name)
