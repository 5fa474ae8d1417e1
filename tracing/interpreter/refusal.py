"""The error for a launch at which Triton's interpreter fails, although the kernel may compile."""

from __future__ import annotations

import linecache
import traceback
from pathlib import Path
from types import FrameType, ModuleType

import triton.language as tl

from tracing.errors import Problem, message
from tracing.interpreter import gates
from tracing.interpreter.builder import AssertFails, not_executable
from tracing.interpreter.kernel_line import line_name
from tracing.interpreter.python_operators import NAMES

_LANGUAGE = str(Path(tl.__file__).parent)
_WRAPPERS = ("wrapper", "check", "<lambda>")  # of the functions of the language


def refusal(error: Exception, kernel: str) -> Problem | None:
    """The error for a launch that raised; None: an assert of the kernel or a watcher of its accesses did."""
    frames = list(traceback.walk_tb(error.__traceback__))
    watched = any(frame.f_code.co_filename == gates.__file__ for frame, _ in frames)
    if watched or isinstance(error, (Problem, AssertFails, MemoryError)):
        return None
    numbers = [number for number, (frame, _) in enumerate(frames) if _is_kernel(frame)]
    if not numbers:
        return None
    frame, line = frames[numbers[-1]]
    called = (one.f_code for one, _ in frames[numbers[-1] + 1 :])
    names = (
        code.co_name
        for code in called
        if code.co_filename.startswith(_LANGUAGE) and code.co_name not in _WRAPPERS
    )
    file = frame.f_code.co_filename
    operation = next((f"tl.{name}" for name in names), f"`{linecache.getline(file, line).strip()}`")
    where = f"{kernel} at {line_name(file, line)}"
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return Problem(f"{where}: {message(error)}", "mend the name")  # of a kernel that was edited
    return not_executable(f"{operation} ({type(error).__name__}: {message(error)})", where)


def _is_kernel(frame: FrameType) -> bool:
    return NAMES.keys() <= frame.f_globals.keys()
