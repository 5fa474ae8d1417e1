"""Executes one recorded launch in Triton's interpreter, and checks each memory access."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import torch

from tracing.interpreter.gates import watched
from tracing.launch.memory.accesses import Accesses
from tracing.launch.memory.out_of_bounds import OutOfBoundsError, OutsideAccesses
from tracing.model import MemoryEvidence
from tracing.model.record import with_fields
from tracing.record.memory.exact_accesses import race_of
from tracing.replay.arguments import layout_of, memory_of, tensors_in
from tracing.replay.loaded_kernel import load_kernel
from tracing.store.recorded_launch import RecordedLaunch

NOT_COVERED = (
    "memory that the kernel reaches through loaded addresses, shared memory, and threads of one program, "
    "except where two arguments share memory: the interpreter executes the kernel's source, one program "
    "after another"
)


def memory_check(launch: RecordedLaunch) -> list[MemoryEvidence]:
    """The memory evidence of a launch.

    The arguments have their recorded layout, with the kept contents and zeros elsewhere. Cost: as
    `tracing.interpreter.execute`. Memory: that of the arguments three times, on the host.

    Raises Problem for a kernel that the interpreter cannot execute.
    """
    memory = memory_of(layout_of(launch.launch), launch.contents(), 0, "cpu")
    tensors = tensors_in(layout_of(launch.launch), memory)
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
    return [with_fields(one, where=_recorded_line(launch, one.where)) for one in evidence]


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
