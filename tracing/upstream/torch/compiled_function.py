"""The function that a compile by Dynamo is of, and the name of its backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType, CodeType
from typing import Any

import torch
from torch._dynamo import external_utils

from tracing.upstream.contract import require

_NO_CODE = compile("", "<builtin>", "exec")


def wrapped_function(code: CodeType, closure: Sequence[CellType] | None) -> Callable[..., Any] | None:
    """The function for which torch made a frame; None: the frame is the function's own.

    code, closure -- of the frame that is compiled

    torch makes one where Dynamo skips the function's own: of torch, as nn.Sequential.forward, or a builtin.
    """
    function = None
    while code.co_filename == external_utils.__file__ and "fn" in code.co_freevars and closure:
        function = _function(closure[code.co_freevars.index("fn")].cell_contents)
        code, closure = getattr(function, "__code__", _NO_CODE), getattr(function, "__closure__", None)
    return function


def _function(wrapped: Any) -> Callable[..., Any]:
    # of a module, or of its bound __call__, the function that the user knows
    module = getattr(wrapped, "__self__", wrapped)
    if isinstance(module, torch.nn.Module):
        return getattr(module.forward, "__func__", module.forward)
    return wrapped  # type: ignore[no-any-return]


def is_compiled(function: Any) -> bool:
    """True for what torch.compile returns, which has its own backend and options."""
    wraps = hasattr(function, "_torchdynamo_orig_callable") and not hasattr(function, "_torchdynamo_disable")
    return isinstance(function, torch._dynamo.OptimizedModule) or wraps


def backend_name(compiler: Any) -> str:
    """The name of a backend as Dynamo has it: "inductor", or that of a function; empty: not known.

    compiler -- what Dynamo calls to compile a graph
    """
    name = getattr(compiler, "_compiler_name", None) or getattr(compiler, "__name__", None)
    return name if isinstance(name, str) else ""


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    inner = external_utils.wrap_inline(torch.nn.Sequential())
    function = wrapped_function(inner.__code__, inner.__closure__)
    require(function is torch.nn.Sequential.forward, "the function of a frame that torch makes")
    disabled = torch.compiler.disable(len)  # type: ignore[no-untyped-call]
    compiled = [is_compiled(torch.compile(one)) for one in (abs, torch.nn.Sequential())]
    require(all(compiled) and not is_compiled(disabled), "what torch.compile returns")
    require(
        backend_name(torch._dynamo.eval_frame.get_compiler_fn("eager")) == "eager", "the name of a backend"
    )
