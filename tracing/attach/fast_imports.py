"""Import torch and Triton without what costs a tenth of the time of it, and half in a debugged program.

- debugpy traces every call until Python 3.12. Breakpoints in functions of these libraries stop as before;
  those in statements that run while a module is imported do not.
- The garbage collector looks through the modules' objects repeatedly, which all stay.

Warnings of what this project imports are ignored: the user may have made warnings errors, for the program.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from tracing.attach.python_debugger import untraced
from tracing.upstream.import_hook import unwarned

_LIBRARIES = frozenset(("msgspec", "numpy", "rich", "sympy", "torch", "triton", "typer"))
_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


def switch_on() -> None:
    """From now on, import these libraries untraced and without garbage collection."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    # only the outermost import of a library turns both off and on

    def __init__(self) -> None:
        self.busy = False

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if self.busy or name.partition(".")[0] not in _LIBRARIES:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                silent = unwarned() if _this_project_imports() else nullcontext()
                with self._outermost(), _uncollected(), untraced(), silent:
                    execute(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    @contextmanager
    def _outermost(self) -> Iterator[None]:
        self.busy = True
        try:
            yield
        finally:
            self.busy = False


@contextmanager
def _uncollected() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _this_project_imports() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _imports(frame.f_code):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_PACKAGE)


def _imports(code: CodeType) -> bool:
    return code.co_name == "exec_module" or "importlib" in code.co_filename
