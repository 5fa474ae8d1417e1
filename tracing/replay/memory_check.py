"""Executes one recorded launch in Triton's interpreter, and checks each memory access."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import msgspec
import torch

from tracing.errors import Problem
from tracing.interpreter import backwards
from tracing.interpreter.gates import watched
from tracing.launch.memory.accesses import Accesses
from tracing.launch.memory.out_of_bounds import OutOfBoundsError, OutsideAccesses
from tracing.model import MemoryEvidence
from tracing.model.record import with_fields
from tracing.record.memory.exact_accesses import race_of, undecided_of
from tracing.replay.arguments import layout_of, memory_of, tensors_over
from tracing.replay.loaded_kernel import load_kernel
from tracing.store.recorded_launch import RecordedLaunch

NOT_COVERED = (
    "memory that the kernel reaches through loaded addresses, shared memory, and threads of one program, "
    "except where two arguments share memory: the interpreter executes the kernel's source, one program "
    "after another"
)
_ORDERS = (
    "; of a kernel with atomics, orders of programs other than that of the grid and its reverse; a volatile "
    "load counts as an atomic that acquires"
)


class MemoryCheck(msgspec.Struct, frozen=True):
    """What the memory accesses of a launch prove."""

    evidence: tuple[MemoryEvidence, ...]  # accesses that no correct kernel makes
    undecided: str  # why it is not known whether programs race; empty: it is known
    not_covered: str
    atomics: bool  # the kernel has some


def memory_check(launch: RecordedLaunch) -> MemoryCheck:
    """Check the memory accesses of a launch.

    The arguments have their recorded layout, with the kept contents and zeros elsewhere. A kernel with
    atomics is executed in the order of the grid and in its reverse, because atomics may order programs in one
    of them by chance. Cost: as `tracing.interpreter.execute`. Memory: that of the arguments three times, on
    the host.

    Raises Problem for a kernel that the interpreter cannot execute.
    """
    check = _checked(launch)
    if not check.atomics:
        return check
    check = msgspec.structs.replace(check, not_covered=check.not_covered + _ORDERS)
    if check.evidence:
        return check
    try:
        with backwards():
            reverse = _checked(launch)
    except Problem:  # a program waits for one that comes before it in the grid
        why = "only the order of the grid was executed: in the reverse order a program waits for a later one"
        return msgspec.structs.replace(check, not_covered=f"{check.not_covered}; {why}")
    return msgspec.structs.replace(
        check, evidence=reverse.evidence, undecided=check.undecided or reverse.undecided
    )


def _checked(launch: RecordedLaunch) -> MemoryCheck:
    # in one order of programs
    memory = memory_of(layout_of(launch.launch), launch.contents(), 0, "cpu")
    tensors = tensors_over(layout_of(launch.launch), memory)
    accesses = Accesses(launch.launch.kernel_name, tensors)
    accesses.fatal = True  # memory farther away than a page is not accessed
    leaving = contextlib.suppress(OutOfBoundsError)  # `accesses` contains it already
    with load_kernel(launch.module) as kernel, watched([accesses]), leaving:
        kernel.interpret({**launch.values, **tensors}, launch.launch.grid)
    index = launch.launch.index
    race = race_of(index, accesses)
    outside = [
        replace(one, inside=one.argument in tensors and _in_storage(launch, one, tensors[one.argument]))
        for one in accesses.outside
    ]
    evidence = [*(_outside(index, one) for one in outside), *([race] if race else [])]
    recorded = tuple(with_fields(one, where=_recorded_line(launch, one.where)) for one in evidence)
    undecided = undecided_of(accesses, lambda where: _recorded_line(launch, where) or where)
    return MemoryCheck(recorded, undecided, NOT_COVERED, accesses.before.time > 0)


def _recorded_line(launch: RecordedLaunch, where: str | None) -> str | None:
    # maps a line of the loaded module to the line of the file that the kernel was recorded from
    _, _, number = (where or "").rpartition(":")
    kernel = launch.launch.kernel
    if not number or kernel.file is None or kernel.source is None:
        return where
    before, source, _ = launch.module.partition(launch.run.text(kernel.source).rstrip())
    path, _, first = kernel.file.rpartition(":")
    inside = int(number) - before.count("\n") - 1
    known = source and 0 <= inside <= source.count("\n")
    return f"{Path(path).name}:{int(first) + inside}" if known else where


def _in_storage(launch: RecordedLaunch, one: OutsideAccesses, tensor: torch.Tensor) -> bool:
    # the recorded storage: the one of the check is larger on both sides
    argument = launch.tensors[one.argument]
    recorded = launch.run.storages(launch.process)
    if argument.storage not in recorded or argument.tensor is None:
        return False
    first = argument.tensor.offset * tensor.element_size() - tensor.data_ptr()
    return first + one.start >= 0 and first + one.stop <= recorded[argument.storage].nbytes


def _outside(launch: int, one: OutsideAccesses) -> MemoryEvidence:
    return MemoryEvidence(launch, "out of bounds", (one.argument,), one.record(launch).what, one.where)
