"""Exclude code from Dynamo, clear compiled code, and run the code that a program has for compilation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import torch
import torch._dynamo
from torch._C._dynamo.eval_frame import set_eval_frame
from torch._dynamo import eval_frame, trace_rules
from torch._dynamo.backends import debugging
from torch._guards import CompileContext

from tracing.upstream.contract import require
from tracing.upstream.patch import patched, replaced

_Function = TypeVar("_Function", bound=Callable[..., Any])

__all__ = [
    "FramesSkipped",
    "called_functions",
    "compile_id",
    "compiled_calls_reported",
    "compiling_reported",
    "constant_result",
    "forget_compiled",
    "nothing_compiled",
    "set_eval_frame",
    "untraced",
]


def untraced(function: _Function) -> _Function:
    """Make Dynamo call a function instead of tracing it; usable as a decorator."""
    wrapped: _Function = torch._dynamo.disable(function)  # type: ignore[no-untyped-call, unused-ignore]
    return wrapped


def constant_result(function: _Function) -> _Function:
    """Make Dynamo call a function while it traces, and treat the result as a constant."""
    wrapped: _Function = torch._dynamo.assume_constant_result(function)  # type: ignore[no-untyped-call, unused-ignore]
    return wrapped


def compile_id() -> str:
    """Dynamo's number of the frame that is being compiled, and of its compile: "0/0"; empty: none."""
    return str(CompileContext.current_compile_id() or "")


def forget_compiled() -> None:
    """Drop everything that Dynamo compiled in this process: the next call of each function compiles anew."""
    torch._dynamo.reset()


def called_functions(program: Callable[..., Any], *inputs: torch.Tensor) -> list[str]:
    """The functions that Dynamo's graph of a program calls: "torch.nn.functional.gelu"."""
    names: list[str] = []

    def compiled(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        calls = [one.target for one in graph.graph.nodes if one.op == "call_function"]
        names.extend(f"{one.__module__}.{one.__name__}" for one in calls)
        return graph.forward

    forget_compiled()
    torch.compile(program, backend=compiled, fullgraph=True)(*inputs)
    forget_compiled()
    return names


class FramesSkipped:
    """While entered, Dynamo neither compiles the frames of these files nor inlines their functions.

    A process that is forked meanwhile may end without leaving it; a generator would then run, without torch.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        """paths -- how the files' paths begin: "/folder/", "/folder/file.py" """
        self._paths = paths

    def __enter__(self) -> None:
        trace_rules.SKIP_DIRS.extend(self._paths)
        trace_rules._recompile_re()

    def __exit__(self, *exception: object) -> None:
        for path in self._paths:
            trace_rules.SKIP_DIRS.remove(path)
        trace_rules._recompile_re()


@contextmanager
def compiling_reported() -> Iterator[None]:
    """While active, `torch.compiler.is_compiling()` is true, although nothing compiles.

    `torch.compiler.is_dynamo_compiling()` as well, unless a program has imported the function itself.
    """
    with (
        replaced(torch.compiler, "_is_compiling_flag", True),
        replaced(torch.compiler, "is_dynamo_compiling", lambda: True),
    ):
        yield


@contextmanager
def nothing_compiled() -> Iterator[None]:
    """While active, functions that torch.compile has wrapped run as they are written.

    Unlike the stance "force_eager" it lets Dynamo trace what it interprets: `torch.cond` outside of
    torch.compile is traced, and has no gradients of what its branches capture if it is not.
    """

    def choosing(original: Callable[..., Any]) -> Callable[..., Any]:
        def choose(callback: Any) -> Any:
            return original(callback) if callable(callback) and _interprets(callback) else None

        return choose

    with patched(eval_frame, "_callback_from_stance", choosing), _frames_not_counted():
        yield


def _frames_not_counted() -> AbstractContextManager[None]:
    # with fullgraph=True a call raises if it compiles no frame: a count that has begun is not begun anew
    if not hasattr(eval_frame, "set_fullgraph_compiled_frame_count"):  # as in torch 2.11
        return nullcontext()
    return patched(eval_frame, "set_fullgraph_compiled_frame_count", lambda original: lambda count: 0)


def _interprets(callback: Callable[..., Any]) -> bool:
    # the backend "eager", and the forms of it that higher order operators use
    backend = eval_frame.innermost_backend(callback)
    function = getattr(backend, "compiler_fn", backend)
    named = getattr(function, "__qualname__", "").startswith(("eager", "make_eager_backend"))
    return named and getattr(function, "__module__", "") == debugging.__name__


@contextmanager
def compiled_calls_reported() -> Iterator[None]:
    """Like `nothing_compiled`, and `torch.compiler.is_compiling()` is true inside of such functions."""

    def wrapping(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrap(context: Any, function: Any) -> Any:
            wrapped = original(context, function)
            if isinstance(wrapped, torch.nn.Module):  # it has wrapped its own call
                return wrapped

            @functools.wraps(wrapped)
            def reported(*args: Any, **options: Any) -> Any:
                with compiling_reported():
                    return wrapped(*args, **options)

            return reported

        return wrap

    with nothing_compiled(), patched(eval_frame._TorchDynamoContext, "__call__", wrapping):
        yield


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require(untraced(len)([1]) == 1, "a function that still returns its result")
    with compiling_reported():
        require(torch.compiler.is_compiling(), "a flag that reports a compilation")
    require(not torch.compiler.is_compiling(), "a flag that reports no compilation")
    callback = set_eval_frame(None)
    set_eval_frame(callback)

    def traced(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    graphs: list[object] = []

    def backend(graph: torch.fx.GraphModule, inputs: object) -> Callable[..., Any]:
        graphs.append(graph)
        require(compile_id(), "the number of a compile")
        return graph.forward

    require(not compile_id(), "no compile is running now")
    compiled = torch.compile(traced, backend=backend)
    with nothing_compiled():
        compiled(torch.ones(1))
        torch.compile(traced, backend=backend, fullgraph=True)(torch.ones(1))
        interpreted = torch.compile(torch.compiler.is_compiling, backend="eager")()
    require(interpreted, "a function of the backend eager that is traced")
    with compiled_calls_reported():
        flag = torch.compile(torch.compiler.is_compiling, fullgraph=True)()
    require(flag and not torch.compiler.is_compiling(), "a flag that is set inside of wrapped functions")
    with FramesSkipped([__file__]):
        compiled(torch.ones(1))
    require(not graphs, "a skipped file whose frames are not compiled")
    forget_compiled()
    compiled(torch.ones(1))
    require(len(graphs) == 1, "a frame that is compiled once its file is no longer skipped")
