"""A hook on the pass managers of Triton's native library, for debuggers.

Imports neither torch nor Triton: it is part of every process that a debugged program starts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tracing.upstream.contract import require
from tracing.upstream.import_hook import when_imported

_LIBRARY = "triton._C.libtriton"


def call_before_passes(reached: Callable[..., None]) -> None:
    """Call `reached(pass_manager, module, *tag)` before each run of a pass manager, from the import on.

    Triton need not be imported yet: its library is patched when it is imported.
    """
    when_imported(_LIBRARY, functools.partial(_patch, reached))


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
