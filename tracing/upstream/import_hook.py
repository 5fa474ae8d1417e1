"""Calls a function when another project's module is imported; silences what imports warn of.

Imports neither torch nor Triton: it is part of every process that a debugged program starts.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def when_imported(name: str, call: Callable[[ModuleType], None]) -> None:
    """Call `call(module)` once the module has been executed; never if it was imported before."""
    sys.meta_path.insert(0, _Finder(name, call))


@contextmanager
def unwarned() -> Iterator[None]:
    """While active, no warning is shown or raised; filters that a library adds while it is imported stay."""
    warnings.filterwarnings("ignore", module=".*")
    own = warnings.filters[0]
    try:
        yield
    finally:
        with suppress(ValueError):  # by warnings.resetwarnings
            warnings.filters.remove(own)  # type: ignore[attr-defined]


class _Finder:
    # finds the module as Python would; stays, because another thread may iterate over sys.meta_path

    def __init__(self, name: str, call: Callable[[ModuleType], None]) -> None:
        self.name = name
        self.call = call
        self.found = False

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if name != self.name or self.found:
            return None
        self.found = True
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self.call(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
