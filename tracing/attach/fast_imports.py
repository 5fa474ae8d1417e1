"""Import torch and Triton without what costs a tenth of the time of it, and half in a debugged program.

- debugpy traces every call until Python 3.12. Breakpoints in functions of these libraries stop as before;
  those in statements that run while a module is imported do not.
- The garbage collector looks through the modules' objects repeatedly, which all stay.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tracing.attach.python_debugger import untraced

_LIBRARIES = frozenset(("msgspec", "numpy", "rich", "sympy", "torch", "triton", "typer"))


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
                with self._outermost(), _uncollected(), untraced():
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
