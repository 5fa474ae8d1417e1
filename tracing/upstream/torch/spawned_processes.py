"""Processes in which a program starts Python: by multiprocessing, subprocess, os.system or os.posix_spawn."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import popen_forkserver, popen_spawn_posix
from pathlib import Path
from typing import Any

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.patch import Method, Wrapper, patched

_PYTHON = re.compile(r"(pypy|python)[\d.]*")
_SHELLS = ("sh", "bash", "dash", "zsh")
_SEPARATORS = frozenset("();<>|&")
_BEFORE = ("env", "exec", "nice", "nohup", "time", "timeout")
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
                starts = False
                with suppress(TypeError, ValueError):  # of what the call itself refuses
                    starts = starts_python(*args, **kwargs)
                if starts and not _is_of_a_compiler():
                    note()
                return original(*args, **kwargs)

            return start

        return wrapper

    with ExitStack() as stack:
        for process in (popen_spawn_posix.Popen, popen_forkserver.Popen):
            stack.enter_context(patched(process, "_launch", noting(lambda *args, **options: True)))
        # the words may be another list than the program: Popen(["name", "-c", "pass"], executable="python")
        popen = noting(lambda self, args, executable=None, *rest, **options: _is_python(args, executable))
        stack.enter_context(patched(subprocess.Popen, "_execute_child", popen))
        stack.enter_context(patched(os, "system", noting(lambda command="": _is_python(command))))
        for name in ("posix_spawn", "posix_spawnp"):
            stack.enter_context(
                patched(os, name, noting(lambda path="", *rest, **options: _is_python([path])))
            )
        yield


def _is_python(command: Any, executable: Any = None) -> bool:
    # command -- the text of a shell's command, or a list of words; an iterator is not read
    if executable is not None and Path(os.fsdecode(executable)).name not in _SHELLS:
        return _executes_python(os.fsdecode(executable))
    if isinstance(command, (str, bytes)):
        return any(map(_executes_python, _commands(os.fsdecode(command))))
    if isinstance(command, os.PathLike):
        return _executes_python(os.fsdecode(command))
    if not isinstance(command, (list, tuple)) or not command:
        return False
    words = [os.fsdecode(one) for one in command]
    if Path(words[0]).name in _SHELLS and "-c" in words[:-1]:
        return _is_python(words[words.index("-c") + 1])
    return _executes_python(_program(words))


def _commands(text: str) -> Iterator[str]:
    # the program of each simple command of a shell's text
    words: list[str] = []
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        for word in lexer:
            if {*word} <= _SEPARATORS:
                yield _program(words)
                words = []
            else:
                words.append(word)
    except ValueError:  # a shell's syntax that shlex does not know
        pass
    yield _program(words)


def _program(words: Sequence[str]) -> str:
    # without `A=1`; of a program that executes another one, as `nice -n 10 python`, the other one
    called = [one for one in words if "=" not in one]
    if not called or Path(called[0]).name not in _BEFORE:
        return called[0] if called else ""
    others = (one for one in called if Path(one).name not in _BEFORE)
    return next((one for one in others if not (one.startswith("-") or one[:1].isdigit())), "")


def _executes_python(word: str) -> bool:
    if _PYTHON.fullmatch(Path(word).name):
        return True
    path = Path(shutil.which(word) or "")
    try:
        if not path.is_file():
            return False
        with path.open("rb") as script:
            return re.match(rb"#!.*python", script.read(256)) is not None
    except (OSError, ValueError):
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
    require_parameters(subprocess.Popen._execute_child, "self", "args", "executable")  # type: ignore[attr-defined]
    noted: list[None] = []
    with spawns_noted(lambda: noted.append(None)):
        require(os.system("true") == 0 and not noted, "a command of a shell")
