"""The properties that a driver reads from a kernel's binary: registers, spills, and threads per program.

Read from the binary itself. A cubin has a section `.nv.info` of attributes, an hsaco a note of MessagePack.
Sources: NVIDIA's cuobjdump --dump-resource-usage, with which the tests compare; LLVM's "User Guide for AMDGPU
Backend", section "Code Object V4 Metadata".
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass

import msgspec

from tracing.elf import ElfFile, NotElf

_SIZED = 4  # format of an attribute: size, then content; the others are four bytes in all
_FRAME_SIZE, _REGISTERS = 0x11, 0x2F  # attributes: (symbol, value)
THREADS = 1024  # of one program, on every NVIDIA GPU


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one kernel."""

    registers: int | None  # of a thread; None: the binary does not say
    spills: int  # spilled words of a thread, in memory
    threads: int  # maximum of one program


@functools.lru_cache(maxsize=1024)  # Triton asks before every launch
def resources(kernel: bytes) -> Resources:
    """The resources of the one kernel in a cubin or an hsaco."""
    try:
        file = ElfFile(kernel)
    except NotElf:
        return Resources(None, 0, THREADS)
    if information := file.section(".nv.info"):
        return _of_cubin(file.content(information))
    return _of_hsaco(file.content(file.section(".note")))


def _of_cubin(info: bytes) -> Resources:
    values: dict[tuple[int, int], int] = {}  # (attribute, symbol): the kernel's is the one that has registers
    kernel, at = 0, 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _SIZED:
            if attribute in (_FRAME_SIZE, _REGISTERS):
                symbol, value = struct.unpack_from("<II", info, at)
                values[attribute, symbol] = value
                kernel = symbol if attribute == _REGISTERS else kernel
            at += size
    frame = values.get((_FRAME_SIZE, kernel), 0)
    return Resources(values.get((_REGISTERS, kernel)), frame // 4, THREADS)


def _of_hsaco(note: bytes) -> Resources:
    if len(note) < 12:
        return Resources(None, 0, THREADS)
    name, size, _ = struct.unpack_from("<III", note)
    start = 12 + (name + 3) // 4 * 4
    kernel = msgspec.msgpack.decode(note[start : start + size])["amdhsa.kernels"][0]
    return Resources(
        kernel[".vgpr_count"], kernel[".private_segment_fixed_size"] // 4, kernel[".max_flat_workgroup_size"]
    )
