"""Executes the programs of one launch in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch

from tracing.interpreter.batch.batched_array import BatchedArray
from tracing.interpreter.batch.divergence import Diverged, OneAtATime, TooLarge
from tracing.interpreter.batch.launch_memory import LaunchMemory
from tracing.interpreter.batch.ownership import ReadersNeeded
from tracing.interpreter.gates import batches_noted

Index: TypeAlias = "int | BatchedArray"
Indices: TypeAlias = tuple[Index, ...]

MOST = 1024  # programs in one batch


def in_batches(
    programs: Sequence[tuple[int, ...]],
    execute: Callable[[Indices], object],
    tensors: Sequence[torch.Tensor],
) -> str:
    """Execute the programs of a launch, as many together as the size of their arrays allows.

    programs -- the indices of each along x, y and z
    execute  -- runs the kernel for one program, or for those whose indices are batched
    tensors  -- the arguments of the launch

    Returns an empty string; or the reason why the programs must be executed one at a time. Nothing has
    happened then: memory is as it was, and watchers have forgotten the accesses.
    """
    for readers in (False, True):
        memory = LaunchMemory(tensors, readers=readers)
        try:
            with batches_noted():
                _run(programs, execute, memory)
        except ReadersNeeded:
            memory.undo()
        except Exception as error:  # whatever it is, one program at a time raises what it ever raised
            memory.undo()
            return str(error) if isinstance(error, OneAtATime) else type(error).__name__
        else:
            return ""
    raise AssertionError("the second attempt follows readers")


def _run(
    programs: Sequence[tuple[int, ...]], execute: Callable[[Indices], object], memory: LaunchMemory
) -> None:
    waiting: deque[Sequence[int]] = deque([range(len(programs))])
    most = MOST
    while waiting:
        group = waiting.popleft()
        if len(group) > most:
            waiting.appendleft(group[most:])
            group = group[:most]
        try:
            with memory.executing([number + 1 for number in group]):
                execute(_indices([programs[number] for number in group]))
        except Diverged as diverged:
            memory.undo_group()
            waiting.extendleft(reversed(list(diverged.groups(group))))
        except TooLarge as large:
            memory.undo_group()
            waiting.appendleft(group)
            most = max(1, len(group) * large.allowed // large.needed)


def _indices(programs: Sequence[tuple[int, ...]]) -> Indices:
    return tuple(map(_index, zip(*programs, strict=True)))


def _index(values: tuple[int, ...]) -> Index:
    if len(set(values)) == 1:
        return values[0]
    return BatchedArray(np.array(values, np.int32).reshape(-1, 1))
