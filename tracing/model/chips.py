"""The GPUs that kernels can be compiled for on a machine without a GPU, by the name of the target."""

from __future__ import annotations

from dataclasses import dataclass

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
