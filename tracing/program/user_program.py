"""Run a program as `python` runs it, in this process: a script, a folder with `__main__.py`, a module by -m.

The environment of the program is that of `python`: `__main__`, `sys.argv`, `sys.path[0]`, the standard
streams. Uncaught exceptions are printed as by `python`: `shown_as_by_python` removes this project's frames.
"""

from __future__ import annotations

import importlib.machinery
import os
import re
import sys
import threading
import types
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

# what `python -m` itself calls; runpy.run_module gives a program other globals and another traceback
from runpy import _run_module_as_main  # type: ignore[attr-defined]
from typing import Any

from tracing.program.torch_import import torch_not_imported
from tracing.upstream.torch.source_names import MODE_FILES, MODE_WRAPPER_FILES

_MAIN = "__main__"  # the module that `python -m package` and `python folder` execute
_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


@dataclass(frozen=True, slots=True)
class UserProgram:
    """A command line of `python`: "train.py", "--epochs", "3", or "-m", "package.module", "--epochs", "3"."""

    words: Sequence[str]

    @property
    def is_module(self) -> bool:
        """True if it is named by -m."""
        return self.words[0] == "-m"

    @property
    def name(self) -> str:
        """The name for its runs."""
        if self.is_module:
            return self.words[1].removesuffix(f".{_MAIN}")
        return file_program(Path(self.words[0]).resolve())

    @property
    def path(self) -> Path:
        """Its file, if known; that of a module is known once it runs."""
        named = getattr(sys.modules.get("__main__"), "__file__", None) if self.is_module else self.words[0]
        return Path(named or os.curdir).absolute()

    def require_readable(self) -> None:
        """Raise the SyntaxError, or ValueError, that `execute` would raise first, if it is a script."""
        if not self.is_module and Path(self.words[0]).is_file() and not _is_archive(self.words[0]):
            with warnings.catch_warnings():  # `execute` shows them
                warnings.simplefilter("ignore")
                _compiled(_absolute(self.words[0]))

    def execute(self) -> None:
        """Run it as `__main__`; raises what it raises, SystemExit included.

        Variables that it sets before it imports torch have the effect that they have under `python`.
        """
        with torch_not_imported():
            self._execute()

    def _execute(self) -> None:
        main = types.ModuleType("__main__")
        main.__dict__.update(__annotations__={}, __builtins__=sys.modules["builtins"])
        sys.modules["__main__"] = main
        if "__mp_main__" in sys.modules:  # of multiprocessing, which torch has imported
            sys.modules["__mp_main__"] = main
        sys.orig_argv[1:] = [*_interpreter_options(), *self.words]
        if self.is_module:
            sys.argv = ["-m", *self.words[2:]]  # until the module is found, as Python has it
            _first_on_path(str(Path.cwd()))
            _run_module_as_main(self.words[1], True)
        elif Path(self.words[0]).is_dir() or _is_archive(self.words[0]):
            sys.argv = list(self.words)
            _first_on_path(_absolute(self.words[0]))
            _run_module_as_main("__main__", False)
        else:
            sys.argv = list(self.words)
            _first_on_path(str(Path(self.words[0]).resolve().parent))
            _run_script(main, _absolute(self.words[0]))


def file_program(path: Path) -> str:
    """The name of the program in a file or folder: of `package/__main__.py` it is `package`."""
    return path.parent.name if path.stem == _MAIN and path.parent.name else path.stem


def _interpreter_options() -> list[str]:
    # as in `python -X dev -m tracing run …`, and of the interpreter's line in `tracing`
    before = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    options = before[:-1]  # without the module or the script
    if options and re.fullmatch("-[A-Za-z]*m", options[-1]):
        options[-1:] = [flags] if (flags := options[-1][:-1]) != "-" else []
    return options


def _run_script(main: types.ModuleType, path: str) -> None:
    main.__file__ = path
    main.__dict__["__cached__"] = None
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    exec(_compiled(path), main.__dict__)  # the user's own


def _compiled(path: str) -> types.CodeType:
    return compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)


def _absolute(path: str) -> str:
    # as Python does, up to 3.13 at least: nothing is normalised
    return path if path.startswith(os.sep) else f"{Path.cwd()}{os.sep}{path}"


def _is_archive(path: str) -> bool:
    return zipfile.is_zipfile(path)  # also after a line with an interpreter, as Python's own test


def _first_on_path(folder: str) -> None:
    # replaces ours: the folder of `tracing`, or the working directory of `python -m tracing`
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def shown_as_by_python(error: BaseException) -> None:
    """From now on Python's report of an uncaught exception has no frames of this project."""
    hook = sys.excepthook
    _clean(error)
    trace = error.__traceback__  # before the callers of the program add their frames

    def report(kind: type[BaseException], value: BaseException, _: Any) -> None:
        sys.excepthook = hook
        hook(kind, value.with_traceback(trace), trace)

    sys.excepthook = report


def threads_shown_as_by_python() -> None:
    """Like `shown_as_by_python`, for exceptions in threads of the program."""
    hook: Callable[[Any], Any] = threading.excepthook

    def report(raised: Any) -> None:
        _clean(raised.exc_value)
        hook(threading.ExceptHookArgs((raised.exc_type, raised.exc_value, _trace(raised), raised.thread)))

    threading.excepthook = report


def _trace(raised: Any) -> Any:
    return raised.exc_value.__traceback__ if raised.exc_value is not None else raised.exc_traceback


def _clean(error: BaseException | None) -> None:
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = _without_ours(one.__traceback__)
            waiting += [one.__cause__, one.__context__]


def _files(steps: Sequence[types.TracebackType]) -> tuple[str, ...]:
    # the end of each file's path, as MODE_WRAPPER_FILES has it
    names = [step.tb_frame.f_code.co_filename for step in steps]
    return tuple(next((one for one in MODE_WRAPPER_FILES if name.endswith(one)), name) for name in names)


def _without_ours(trace: types.TracebackType | None) -> types.TracebackType | None:
    steps: list[types.TracebackType] = []
    ours = False  # the frame before
    while trace is not None:
        code, before = trace.tb_frame.f_code, ours
        ours = code.co_filename.startswith(_PACKAGE) or (ours and code.co_filename.endswith(MODE_FILES))
        if code is UserProgram.execute.__code__:
            steps.clear()  # so is what called it
        elif not ours:
            steps.append(trace)
        elif not before and _files(steps[-len(MODE_WRAPPER_FILES) :]) == MODE_WRAPPER_FILES:
            del steps[-len(MODE_WRAPPER_FILES) :]  # in which torch calls our mode
        trace = trace.tb_next
    made: types.TracebackType | None = None
    for step in reversed(steps):
        made = types.TracebackType(made, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return made
