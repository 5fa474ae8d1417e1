"""The line of the kernel that Triton's interpreter executes now, in the user's file if there is one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from inspect import getfile
from pathlib import Path
from types import FrameType

import triton

from tracing.errors import Problem
from tracing.upstream.inductor.code import is_generated
from tracing.upstream.inductor.user_kernels import line_of_user

_OURS = Path(getfile(Problem)).parent  # also of the copy in a repro's folder
_NOT_KERNELS = tuple(f"{folder}{os.sep}" for folder in (*triton.__path__, _OURS))
_EXECUTES = str(Path(__file__).parent / "__init__.py")  # calls the kernel
_known: dict[tuple[str, int], str] = {}


def kernel_frames() -> Iterator[FrameType]:
    """The Python frames of the kernel and of the functions that it called, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _EXECUTES:
        if not frame.f_code.co_filename.startswith(_NOT_KERNELS):
            yield frame
        frame = frame.f_back


def kernel_line() -> str:
    """`file.py:12` of the kernel that called, directly or not; empty if no kernel did."""
    frame = next(kernel_frames(), None)
    return line_name(frame.f_code.co_filename, frame.f_lineno) if frame is not None else ""


def kernel_name() -> str:
    """The kernel that called, directly or not; empty if none did."""
    return next((frame.f_code.co_name for frame in reversed(list(kernel_frames()))), "")


def line_name(file: str, line: int) -> str:
    """`file.py:12` of a line of a kernel, in the user's file if there is one."""
    if (file, line) not in _known:
        # generated: a copy of the user's kernel, or a kernel of Inductor's own
        copied = line_of_user(file, line) if is_generated(file) else None
        user_file, user_line = copied or (file, line)
        _known[file, line] = f"{Path(user_file).name}:{user_line}"
    return _known[file, line]
