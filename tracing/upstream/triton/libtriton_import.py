"""A hook on the import of Triton's native library, for debuggers.

Imports neither torch nor Triton: it is part of every process that a debugged program starts.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from tracing.upstream.contract import require

_LIBRARY = "triton._C.libtriton"


def call_before_passes(reached: Callable[..., None]) -> None:
    """Call `reached(pass_manager, module, *tag)` before each run of a pass manager, from the import on.

    Triton need not be imported yet: its library is patched when it is imported.
    """
    sys.meta_path.insert(0, _Finder(functools.partial(_patch, reached)))


class _Finder:
    # finds libtriton as Python would, and removes itself

    def __init__(self, imported: Callable[[ModuleType], None]) -> None:
        self.imported = imported

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if name != _LIBRARY:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self.imported(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _patch(reached: Callable[..., None], library: Any) -> None:
    original = library.ir.pass_manager.run

    @functools.wraps(original)
    def run(manager: Any, module: Any, *tag: Any) -> Any:
        reached(manager, module, *tag)
        return original(manager, module, *tag)

    library.ir.pass_manager.run = run


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require(find_spec(_LIBRARY) is not None, f"the module {_LIBRARY}")
    manager = import_module(_LIBRARY).ir.pass_manager
    require("run" in vars(manager), "a pass manager whose run() can be replaced")
