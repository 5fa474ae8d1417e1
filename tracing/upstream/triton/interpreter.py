"""Triton's interpreter: its base classes, and the names that it looks up at each launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import triton.language as tl
from triton.runtime import interpreter as _interpreter
from triton.runtime.errors import InterpreterError
from triton.runtime.interpreter import (
    FunctionRewriter,
    InterpretedFunction,
    InterpreterBuilder,
    ReduceOps,
    ReduceScanOpInterface,
    ScanOps,
    TensorHandle,
)

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.patch import Wrapper, patched, replaced
from tracing.upstream.triton.libtriton import native_interpreter

# Not a name in every release's list of exports.
ROUNDING_MODE = _interpreter._ir.ROUNDING_MODE
ATOMIC_OP = _interpreter._ir.ATOMIC_OP
PROPAGATE_NAN = _interpreter._ir.PROPAGATE_NAN
DESCRIPTOR_REDUCE_KIND = _interpreter._ir.DESCRIPTOR_REDUCE_KIND
MEM_SEMANTIC = _interpreter._ir.MEM_SEMANTIC
MEM_SYNC_SCOPE = _interpreter._ir.MEM_SYNC_SCOPE

_DECODE = "_mxfp_value_handle_to_float32"

__all__ = [
    "ATOMIC_OP",
    "DESCRIPTOR_REDUCE_KIND",
    "MEM_SEMANTIC",
    "MEM_SYNC_SCOPE",
    "PROPAGATE_NAN",
    "ROUNDING_MODE",
    "FunctionRewriter",
    "InterpretedFunction",
    "InterpreterBuilder",
    "InterpreterError",
    "ReduceOps",
    "ReduceScanOpInterface",
    "ScanOps",
    "TensorHandle",
    "around_launches",
    "decoded_by",
    "implicit_tensor",
    "is_sum",
    "language_patched",
    "module_names",
    "native_interpreter",
    "numpy_dtype",
    "patch_builtins",
    "pointer",
    "program_index",
    "with_classes",
]


def numpy_dtype(dtype: Any) -> npt.DTypeLike:
    """The dtype of the arrays in which the interpreter keeps a Triton dtype: uint16 for bfloat16."""
    result: npt.DTypeLike = _interpreter._get_np_dtype(dtype)
    return result


def is_sum(combine: object) -> bool:
    """True for the function with which `tl.sum` combines two elements."""
    return combine is tl.standard._sum_combine


def implicit_tensor(value: Any) -> Any:
    """An argument of a launch as a kernel receives it: pointers and numbers as `tl.tensor`."""
    return _interpreter._implicit_cvt(value)


def pointer(value: Any, type_name: str) -> Any:
    """A tensor as a kernel receives it that was compiled for another dtype.

    type_name -- as in a kernel's signature: "*fp32"
    """
    dtype = tl.str_to_ty(type_name, None)
    return tl.tensor(TensorHandle(np.array([value.data_ptr()], dtype=np.uint64), dtype), dtype)


def program_index() -> tuple[int, int, int]:
    """The program of the grid that is being executed."""
    x, y, z = _interpreter.interpreter_builder.grid_idx
    return x, y, z


@contextmanager
def decoded_by(decode: Callable[[Any], Any]) -> Iterator[None]:
    """While active, `decode` makes the arrays of float32 of the floats that `tl.dot_scaled` multiplies.

    decode -- of a handle of float8, float16 or bfloat16
    """
    original = getattr(_interpreter, _DECODE, None)
    if original is None:  # not in every release
        yield
        return

    def decoded(handle: Any) -> Any:
        return original(handle) if handle.dtype == tl.uint8 else decode(handle)

    with replaced(_interpreter, _DECODE, decoded):
        yield


@contextmanager
def with_classes(builder: object, semantic: object, reduce: type, scan: type) -> Iterator[None]:
    """While active, the interpreter computes with this builder, these semantics, reductions and scans."""
    replacements: Mapping[str, object] = {
        "interpreter_builder": builder,
        "interpreter_semantic": semantic,
        "ReduceOps": reduce,
        "ScanOps": scan,
    }
    with ExitStack() as stack:
        for name, value in replacements.items():
            stack.enter_context(replaced(_interpreter, name, value))
        yield


def language_patched(scope: object) -> Any:
    """Patch the language modules that are globals of `scope`; the result has set_attr() and restore()."""
    return _interpreter._patch_lang(scope)


def patch_builtins(module: object, builder: object, scope: Any) -> None:
    """Give every builtin of a language module an implementation of the builder, until `scope` restores it."""
    _interpreter._patch_builtin(module, builder, scope)


def module_names() -> dict[str, Any]:
    """The globals of Triton's interpreter, which a rewritten kernel refers to."""
    return dict(vars(_interpreter))


def around_launches(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, each launch under TRITON_INTERPRET=1 calls `wrapper(original)`.

    The arguments are those of InterpretedFunction.run: function, *args, grid=, warmup=, **kwargs.
    """
    return patched(InterpretedFunction, "run", wrapper)


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require(numpy_dtype(tl.bfloat16) == np.uint16, "bfloat16 in arrays of uint16")
    require(hasattr(tl.standard, "_sum_combine"), "the function of tl.sum")
    for name in ("load", "store", "atomic_rmw", "atomic_cas"):
        require(hasattr(native_interpreter, name), f"{name} of the native interpreter")
    for name in ("interpreter_builder", "interpreter_semantic", "ReduceOps", "ScanOps"):
        require(hasattr(_interpreter, name), f"{name} of Triton's interpreter")
    require_methods(InterpreterBuilder, "create_dot", "cast_impl", "create_fp_to_fp", "create_atomic_rmw")
    require_methods(FunctionRewriter, "_compile_and_exec", "rewrite_ast")
    require(issubclass(ReduceOps, ReduceScanOpInterface), "reductions with a common base class")
    for operation in (ReduceOps, ScanOps):
        require_methods(operation, "apply_impl")
    require_parameters(InterpretedFunction.run, "grid", "warmup")
    handle = TensorHandle(np.zeros(1, np.float32), tl.float32)
    require((handle.data.size, handle.dtype) == (1, tl.float32), "a handle of an array and its dtype")
    memory = SimpleNamespace(data_ptr=lambda: 16)
    require(pointer(memory, "*fp32").dtype.element_ty == tl.float32, "a pointer of a signature's type")
    scope = language_patched(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    scope.restore()
