"""The line of the kernel that Triton's interpreter executes now, in the user's file if there is one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

import triton

import tracing
from tracing import interpreter
from tracing.upstream.inductor.code import is_generated
from tracing.upstream.inductor.user_kernels import line_of_user

_FOLDERS = (*triton.__path__, *interpreter.__path__, str(Path(tracing.__file__).parent))
_known: dict[tuple[str, int], str] = {}
_NOT_KERNELS = tuple(f"{folder}{os.sep}" for folder in _FOLDERS)


def kernel_line() -> str:
    """`file.py:12` of the kernel that called, directly or not; empty if no kernel did."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_KERNELS):
        frame = frame.f_back
    if frame is None:
        return ""
    file, line = frame.f_code.co_filename, frame.f_lineno
    if (file, line) not in _known:
        # generated: a copy of the user's kernel, or a kernel of Inductor's own
        copied = line_of_user(file, line) if is_generated(file) else None
        user_file, user_line = copied or (file, line)
        _known[file, line] = f"{Path(user_file).name}:{user_line}"
    return _known[file, line]
