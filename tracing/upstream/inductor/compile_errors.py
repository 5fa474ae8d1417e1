"""The errors of Triton's and Inductor's compilers, and what their frames say about the cause."""

from __future__ import annotations

from types import FrameType
from typing import Any

from torch._inductor.compile_worker.subproc_pool import SubprocException
from torch._inductor.exc import CppCompileError, InductorError
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from triton.compiler.compiler import CompiledKernel
from triton.compiler.compiler import compile as compile_kernel
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import JITFunction

from tracing.upstream.contract import require, require_parameters

__all__ = [
    "CompilationError",
    "CppCompileError",
    "JITFunction",
    "OutOfResources",
    "PTXASError",
    "SubprocException",
    "functions_in",
    "kernel_error",
    "kernel_in",
    "stage_in",
]


def functions_in(frame: FrameType) -> list[Any]:
    """The functions that Triton compiles in a frame of its compiler: `fn`, or `src.fn`."""
    values = list(frame.f_locals.values())
    own = frame.f_locals.get("self")
    members = [getattr(one, "fn", None) for one in values if type(one).__module__.startswith("triton.")]
    return [one for one in (*values, *members, getattr(own, "jit_fn", None)) if isinstance(one, JITFunction)]


def kernel_error(error: BaseException) -> BaseException:
    """The error of Triton's compiler that Inductor wraps; any other error is returned as it is."""
    inner = error.inner_exception if isinstance(error, InductorError) else error
    return inner if isinstance(inner, (CompilationError, OutOfResources, PTXASError)) else error


def kernel_in(frame: FrameType) -> tuple[str, Any] | None:
    """The name and the function of the kernel that a frame of Triton's or Inductor's runtime works on."""
    own = frame.f_locals.get("self")
    if isinstance(own, CachingAutotuner):
        return str((own.inductor_meta or {}).get("kernel_name") or own.fn.__name__), own.fn
    if isinstance(own, CompiledKernel):
        return str(own.name), getattr(own.src, "fn", None)
    return None


def stage_in(frame: FrameType) -> tuple[str, Any, str, str] | None:
    """Kernel, its function, the stage of the compile that a frame of Triton's compiler runs, and its input.

    The input is "" if it is no text.
    """
    if frame.f_code is not compile_kernel.__code__:
        return None
    source, stage, module = (frame.f_locals.get(name) for name in ("src", "ext", "module"))
    function = getattr(source, "fn", None)
    if function is None or stage is None:
        return None
    return str(function.__name__), function, str(stage), module if isinstance(module, str) else ""


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require_parameters(CompilationError.__init__, "src", "node", "error_message")
    require_parameters(OutOfResources.__init__, "required", "limit", "name")
    require_parameters(CppCompileError.__init__, "cmd", "output")
    require(InductorError(error := ValueError(), None).inner_exception is error, "the wrapped error")
    require_parameters(SubprocException.__init__, "details", "name")
    names = compile_kernel.__code__.co_varnames
    require({"src", "ext", "module"} <= {*names}, "source, stage and its input in the compiler's frame")
    require(issubclass(PTXASError, Exception), "the error of ptxas")
    require_parameters(CachingAutotuner.__init__, "fn", "inductor_meta")
