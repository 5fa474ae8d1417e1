"""Import torch and Triton untraced under debugpy, whose trace function sees every call until Python 3.12.

Breakpoints in functions of these libraries stop as before; those in statements that run while a module is
imported do not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_LIBRARIES = frozenset(("msgspec", "numpy", "rich", "sympy", "torch", "triton", "typer"))


def switch_on() -> None:
    """From now on, import these libraries untraced. Does nothing where debugpy does not trace."""
    sys.meta_path.insert(0, _Finder())


class _Finder:
    # only the outermost import of a library turns tracing off and on

    def __init__(self) -> None:
        self.busy = False

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if self.busy or name.partition(".")[0] not in _LIBRARIES or sys.gettrace() is None:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                with self._untraced():
                    execute(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    @contextmanager
    def _untraced(self) -> Iterator[None]:
        debugpy = sys.modules.get("debugpy")
        if debugpy is None:
            yield
            return
        self.busy = True
        debugpy.trace_this_thread(False)
        try:
            yield
        finally:
            debugpy.trace_this_thread(True)
            self.busy = False
