"""A hook on the start and the end of compilations by torch.compile, for debuggers.

Imports neither torch nor Triton: it is part of every process that a debugged program starts.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tracing.upstream.contract import require_methods
from tracing.upstream.import_hook import when_imported

_MODULE = "torch._dynamo.callback"


def call_around_compiles(started: Callable[[], None], ended: Callable[[], None]) -> None:
    """Call both functions around each compilation, from the import of Dynamo on.

    On the thread that compiles, and once for compilations inside of each other.
    """

    def register(module: Any) -> None:
        module.callback_handler.register_start_callback(lambda _: started())
        module.callback_handler.register_end_callback(lambda _: ended())

    when_imported(_MODULE, register)


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    handler = import_module(_MODULE).callback_handler
    require_methods(type(handler), "register_start_callback", "register_end_callback")
