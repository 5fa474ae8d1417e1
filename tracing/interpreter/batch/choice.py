"""Whether the programs of a launch are executed together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from tracing.environment import wants_one_program_at_a_time
from tracing.interpreter.batch.launch_programs import Indices, in_batches
from tracing.upstream.patch import replaced
from tracing.upstream.triton.batched_handles import failure


class _Process:
    one_at_a_time = False


_refused: dict[object, str] = {}  # by function: the reason why a launch could not be executed in batches


@contextmanager
def one_program_at_a_time() -> Iterator[None]:
    """While active, each program of a launch is executed by itself."""
    with replaced(_Process, "one_at_a_time", True):
        yield


def executed_together(
    function: object,
    programs: Sequence[tuple[int, ...]],
    execute: Callable[[Indices], object],
    tensors: Sequence[torch.Tensor],
) -> bool:
    """Execute a launch in batches, as `in_batches`; False: nothing has happened.

    function -- the kernel's; one that was refused is refused until `forget`
    """
    if len(programs) < 2 or function in _refused or _wants_single_programs():
        return False
    reason = in_batches(programs, execute, tensors)
    if reason:
        _refused[function] = reason
    return not reason


def refused(function: object) -> str:
    """Why a kernel's programs are executed one at a time; empty: they are not, or it was not launched."""
    return _refused.get(function, "")


def forget() -> None:
    """Drop what is known about functions."""
    _refused.clear()


def _wants_single_programs() -> bool:
    asked = _Process.one_at_a_time or wants_one_program_at_a_time()
    return asked or _is_debugged() or bool(failure())


def _is_debugged() -> bool:
    # a breakpoint in a kernel is for one program; pydevd may trace without sys.settrace
    return sys.gettrace() is not None or "pydevd" in sys.modules
