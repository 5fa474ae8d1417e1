"""Detects a program that waits for memory which only another program of its grid could change.

Programs run one after another, so such a program would wait for ever. A program that has changed no memory
between two loads, and is at the same instruction with the same values of all variables at both, repeats
itself without end.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
import triton.language as tl

from tracing.errors import Problem
from tracing.interpreter.kernel_line import kernel_frames, kernel_line, kernel_name
from tracing.upstream.triton.interpreter import program_index

FIRST = 1024  # loads without a change of memory after which a program is observed
LONG = 1 << 15  # after which it is named: it may count while it waits, and never be the same

_Position: TypeAlias = tuple[object, list[tuple[CodeType, int]]]  # the program, and its instructions


class WaitsForever(Exception):
    """A program of a launch repeats itself without end."""

    def __init__(self, address: int, where: str) -> None:
        """address -- that it loads; where -- `file.py:12` of the load"""
        super().__init__(f"a program waits for ever at {where}")
        self.address, self.where = address, where

    def problem(
        self, kernel: str, program: tuple[int, ...], arguments: Iterable[tuple[str, torch.Tensor]]
    ) -> Problem:
        """The error for the launch of a kernel.

        arguments -- those in host memory, by name
        """
        name = next((name for name, one in arguments if _holds(one, self.address)), "memory")
        return Problem(
            f"{kernel}: program {program} waits for {name} at {self.where}, which only another program can "
            "change: without a GPU the programs of a grid run one after another, so this kernel needs a GPU",
            "run this kernel on the device, or only compile and record it: `tracing run --compile-only`",
        )


class _State(NamedTuple):
    # keeps the values of variables: those of the interpreter are replaced, and not changed
    position: _Position
    variables: list[dict[str, object]]


class _Program(threading.local):
    loads = 0  # since memory was changed
    seen: _State | None = None


_program = _Program()


def changed() -> None:
    """Note that the program of this thread changed memory, or begins."""
    _program.loads, _program.seen = 0, None


def loaded(address: int) -> None:
    """Note a load, or an atomic that left memory as it was.

    Raises WaitsForever if the program repeats itself. Cost: nothing below FIRST loads without a store.

    Source: the detection of cycles by R. P. Brent (BIT 20, 1980), which keeps one state.
    """
    _program.loads += 1
    if _program.loads < FIRST:
        return
    if _program.loads == LONG:
        _name_it()
    frames = list(kernel_frames())
    position = program_index(), [(frame.f_code, frame.f_lasti) for frame in frames]
    seen, keeps = _program.seen, _program.loads.bit_count() == 1
    if not frames or (not keeps and (seen is None or seen.position != position)):
        return
    variables = [dict(frame.f_locals) for frame in frames]
    if seen is not None and seen.position == position and _same(seen.variables, variables):
        changed()
        raise WaitsForever(address, kernel_line())
    if keeps:
        _program.seen = _State(position, variables)


def _name_it() -> None:
    with suppress(OSError, ValueError, AttributeError):  # the program may have closed the stream
        program = f"{kernel_name()}: program {program_index()}"
        loads = f"has loaded {LONG:,} times and changed no memory, now at {kernel_line()}"
        end = "if it waits for another program, it never ends here: Ctrl-C ends the run"
        sys.stderr.write(f"tracing: {program} {loads}; {end}\n")


def _holds(tensor: torch.Tensor, address: int) -> bool:
    storage = tensor.untyped_storage()
    return storage.data_ptr() <= address < storage.data_ptr() + storage.nbytes()


def _same(a: Any, b: Any) -> bool:
    # False where values cannot be compared
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(value, b[name]) for name, value in a.items())
    if isinstance(a, tl.tensor):
        # a block pointer has no data before triton #9668 ("Rewrite block pointer to be python-only", in 3.8)
        return _same(*(getattr(one.handle, "data", one.handle) for one in (a, b)))
    if isinstance(a, tl.constexpr):
        return _same(a.value, b.value)
    if isinstance(a, (Sequence, tl.tuple)) and not isinstance(a, str):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    return isinstance(a, (bool, int, float, str)) and repr(a) == repr(b)
