"""Memory evidence from the arguments and the TTIR of launches whose accesses were not recorded."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from tracing.analyze.memory.static_accesses import (
    StaticAccess,
    divisible_by_16,
    orders_programs,
    pointed_types,
    source_line,
    static_accesses,
)
from tracing.analyze.runs.recording_commands import is_virtual
from tracing.model import KernelArg, KernelLaunch, MemoryEvidence, Scalar
from tracing.store import Run
from tracing.views import element_bytes, extent

_MLIR_TYPE = re.compile(r"(i|f|bf)(\d+)")


def unseen_launch(
    run: Run, launch: KernelLaunch, storages: Mapping[int, tuple[int, int]]
) -> Iterator[MemoryEvidence]:
    """The evidence in the arguments of a launch of a kernel that has TTIR, and in the TTIR.

    storages -- address and bytes of each, by number
    """
    ttir, memory = run.text(launch.kernel.stages["ttir"]), _memory(launch, storages)
    yield from _leaving(launch, ttir, memory)
    yield from _racing(launch, ttir, memory)
    if not is_virtual(run.info.environment):  # where Inductor takes tensors to be on the CPU
        yield from _misaligned(launch, ttir, memory)


def retyped(run: Run, launch: KernelLaunch) -> Iterator[MemoryEvidence]:
    """Tensors of another dtype than the kernel was compiled for, as Inductor's launchers check none."""
    ttir = run.text(launch.kernel.stages["ttir"])
    args, pointed = _passed(launch), pointed_types(ttir)
    for arg, type_name in zip(args, pointed, strict=True) if len(args) == len(pointed) else ():
        compiled = _MLIR_TYPE.match(type_name)
        if arg.tensor is None or compiled is None or arg.tensor.dtype.startswith("complex"):
            continue
        dtype = arg.tensor.dtype
        same_size = max(8, int(compiled[2])) == 8 * element_bytes(dtype)
        if not same_size or (compiled[1] == "i") is ("float" in dtype):
            what = (
                f"the kernel was compiled for {arg.name} of {type_name}, and it is launched with {dtype}: "
                "what makes this tensor has another dtype than its fake implementation"
            )
            yield MemoryEvidence(launch.index, "specialised", (arg.name,), what)


def _leaving(launch: KernelLaunch, ttir: str, memory: Mapping[str, _Memory]) -> Iterator[MemoryEvidence]:
    # accesses outside of the storage of an argument
    reported: set[tuple[str, int]] = set()
    for one in _accesses(launch, ttir):
        where = memory.get(one.argument)
        if where is None or (one.argument, one.line) in reported:
            continue
        first, last = int(one.elements[0]), int(one.elements[-1])
        if where.lowest <= first and last < where.room:
            continue
        reported.add((one.argument, one.line))
        element = last if last >= where.room else first
        mask = "its mask allows this element" if one.masked else "the access has no mask"
        what = (
            f"program {one.program} {one.verb} {one.argument}[{element}], outside of its storage, "
            f"{one.argument}[{where.lowest}] to [{where.room - 1}]: {mask}"
        )
        kind: Literal["out of bounds", "unmasked"] = "out of bounds" if one.masked else "unmasked"
        yield MemoryEvidence(
            launch.index, kind, (one.argument,), what, source_line(ttir, one.line, launch.kernel.copied)
        )


def _racing(launch: KernelLaunch, ttir: str, memory: Mapping[str, _Memory]) -> Iterator[MemoryEvidence]:
    # the first element that one program reads and another one writes
    if orders_programs(ttir):
        return
    accesses = [one for one in _accesses(launch, ttir) if one.argument in memory]
    for stored, loaded in product(accesses, accesses):
        if (stored.verb, loaded.verb) != ("stores", "loads") or stored.program == loaded.program:
            continue
        a, b = memory[stored.argument], memory[loaded.argument]
        if a.size != b.size or (a.address - b.address) % a.size:
            continue
        apart = (a.address - b.address) // a.size  # elements
        both = np.intersect1d(stored.elements + apart, loaded.elements, assume_unique=True)
        if both.size:
            element = f"{loaded.argument}[{both[0]}]"
            if stored.argument != loaded.argument:
                element += f", which is {stored.argument}[{both[0] - apart}]"
            what = (
                f"program {stored.program} writes {element}, and program {loaded.program} reads it: "
                "programs have no fixed order"
            )
            arguments = tuple(dict.fromkeys([loaded.argument, stored.argument]))
            yield MemoryEvidence(
                launch.index, "race", arguments, what, source_line(ttir, stored.line, launch.kernel.copied)
            )
            return


def _accesses(launch: KernelLaunch, ttir: str) -> tuple[StaticAccess, ...]:
    args = _passed(launch)
    values = tuple((arg.name, arg.value) for arg in args if arg.tensor is None)
    return _static(ttir, tuple(arg.name for arg in args), values, launch.grid)


class _Memory(NamedTuple):
    # of one argument
    address: int
    size: int  # bytes of an element
    lowest: int  # element, from its first one, with which its storage begins
    room: int  # elements from its first one to the end of its storage


def _memory(launch: KernelLaunch, storages: Mapping[int, tuple[int, int]]) -> dict[str, _Memory]:
    memory: dict[str, _Memory] = {}
    for arg in launch.args:
        if arg.tensor is not None and arg.storage is not None and arg.storage in storages:
            address, nbytes = storages[arg.storage]
            size, start = element_bytes(arg.tensor.dtype), extent(arg.tensor)[0]
            memory[arg.name] = _Memory(address + start, size, -(start // size), (nbytes - start) // size)
    return memory


@functools.lru_cache(64)
def _static(
    ttir: str, names: tuple[str, ...], values: tuple[tuple[str, Scalar], ...], grid: tuple[int, int, int]
) -> tuple[StaticAccess, ...]:
    # launches repeat
    return tuple(static_accesses(ttir, names, dict(values), grid))


def _misaligned(launch: KernelLaunch, ttir: str, memory: Mapping[str, _Memory]) -> Iterator[MemoryEvidence]:
    # arguments that the kernel was compiled to take as multiples of 16
    args, divisible = _passed(launch), divisible_by_16(ttir)
    for arg, promised in zip(args, divisible, strict=True) if len(args) == len(divisible) else ():
        value: object = memory[arg.name].address if arg.name in memory else arg.value
        if promised and type(value) is int and value % 16:
            what = f"the kernel was compiled for {arg.name} divisible by 16, and it is launched with {value}"
            yield MemoryEvidence(launch.index, "specialised", (arg.name,), what)


def _passed(launch: KernelLaunch) -> list[KernelArg]:
    # arguments that are none of the kernel's constants
    return [arg for arg in launch.args if arg.name not in launch.kernel.constants]
