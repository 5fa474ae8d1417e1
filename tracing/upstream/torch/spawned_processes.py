"""Processes in which a program starts Python: by multiprocessing, subprocess, os.system or os.posix_spawn."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import popen_forkserver, popen_spawn_posix
from pathlib import Path
from typing import Any

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.patch import Method, Wrapper, patched

_PYTHON = re.compile(r"(pypy|python)[\d.]*")
_COMPILERS = ("torch._inductor", "triton", "tracing")  # what they start is none of the program's processes


@contextmanager
def spawns_noted(note: Callable[[], object]) -> Iterator[None]:
    """While active, `note()` is called before the program starts such a process.

    A script that Python executes, as `torchrun`, is known by its first line. Not noted are `exec`, and
    functions that the program has copied, as by `from os import system`.
    """

    def noting(starts_python: Callable[..., bool]) -> Wrapper:
        def wrapper(original: Method) -> Method:
            def start(*args: Any, **kwargs: Any) -> Any:
                if starts_python(*args) and not _is_of_a_compiler():
                    note()
                return original(*args, **kwargs)

            return start

        return wrapper

    with ExitStack() as stack:
        for process in (popen_spawn_posix.Popen, popen_forkserver.Popen):
            stack.enter_context(patched(process, "_launch", noting(lambda *args: True)))
        popen = noting(lambda self, args, *rest: _is_python(args))
        stack.enter_context(patched(subprocess.Popen, "_execute_child", popen))
        stack.enter_context(patched(os, "system", noting(lambda command="", *rest: _is_python(command))))
        for name in ("posix_spawn", "posix_spawnp"):
            stack.enter_context(patched(os, name, noting(lambda path="", *rest: _is_python([path]))))
        yield


def _is_python(command: Any) -> bool:
    # a word of a shell's command, or the program of a list
    try:
        if isinstance(command, str):
            return any(map(_executes_python, shlex.split(command)))
        if isinstance(command, (bytes, os.PathLike)):
            return _executes_python(os.fsdecode(command))
        words = [os.fsdecode(one) for one in command]
        return bool(words) and (_executes_python(words[0]) or ("-c" in words and _is_python(words[-1])))
    except (TypeError, ValueError):  # what the call itself refuses, or a shell's syntax
        return False


def _executes_python(word: str) -> bool:
    if _PYTHON.fullmatch(Path(word).name):
        return True
    try:
        with Path(shutil.which(word) or "").open("rb") as script:
            return re.match(rb"#!.*python", script.read(256)) is not None
    except OSError:
        return False


def _is_of_a_compiler() -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module != __name__ and module.partition(".")[0] not in sys.stdlib_module_names:
            return any(f"{module}.".startswith(f"{one}.") for one in _COMPILERS)
        frame = frame.f_back  # type: ignore[assignment]
    return False


def contract() -> None:
    """Raise Broken or another error if Python has changed what this file relies on."""
    require_methods(popen_spawn_posix.Popen, "_launch")
    require_methods(popen_forkserver.Popen, "_launch")
    require_parameters(subprocess.Popen._execute_child, "self", "args")  # type: ignore[attr-defined]
    noted: list[None] = []
    with spawns_noted(lambda: noted.append(None)):
        require(os.system("true") == 0 and not noted, "a command of a shell")
