"""Patch `triton.language` for a kernel that the interpreter executes."""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

# Triton imports Gluon at a first launch; with the language patched, that fails on Python 3.10.
import triton.experimental.gluon  # noqa: F401  (imported for its effect)
import triton.language as tl
from triton.language.extra import cuda
from triton.language.extra import libdevice as libdevice_stubs
from triton.language.extra.cuda import libdevice as libdevice_nvidia
from triton.language.extra.cuda import utils as utilities_nvidia
from triton.language.extra.hip import libdevice as libdevice_amd

from tracing.interpreter.batch.batched_array import BatchedArray
from tracing.interpreter.batch.divergence import OneAtATime
from tracing.interpreter.builder import BUILDER, SEMANTIC, not_executable
from tracing.interpreter.floats import as_single
from tracing.interpreter.python_operators import NAMES, OperatorRewriter
from tracing.interpreter.reductions import Reduce, Scan
from tracing.upstream.triton.interpreter import (
    FunctionRewriter,
    TensorHandle,
    decoded_by,
    language_patched,
    module_names,
    patch_builtins,
    with_classes,
)
from tracing.upstream.triton.jit import callable_helpers


@contextmanager
def interpreted() -> Iterator[None]:
    """While active, the language computes with this package's builder, however a kernel imports it."""
    with ExitStack() as stack:
        stack.enter_context(with_classes(BUILDER, SEMANTIC, Reduce, Scan))
        stack.enter_context(decoded_by(as_single))
        # Helpers called inside a kernel are JITFunctions, which refuse to be called outside of a compile.
        stack.enter_context(callable_helpers(_call_helper, _bind_method))
        # Upstream looks for these modules in the kernel's globals; tl.standard needs both of them.
        scope = language_patched(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
        stack.callback(scope.restore)
        # Triton 3.6 has int(array of one element) here, an error since NumPy 2.4.
        scope.set_attr(tl.tensor, "__index__", lambda self: int(self.handle.data.item()))
        scope.set_attr(tl, "range", _device_range)
        scope.set_attr(tl, "static_print", _print)
        for module in (tl, tl.core):
            scope.set_attr(module, "map_elementwise", _map_elementwise)
        _patch_libdevice(scope)
        yield


def _patch_libdevice(scope: Any) -> None:
    for module in (libdevice_nvidia, libdevice_amd, utilities_nvidia, cuda):
        patch_builtins(module, BUILDER, scope)
    # The stubs have no bodies: Triton's compiler maps them to the functions of the target by name.
    for name, _ in inspect.getmembers(libdevice_stubs, inspect.isfunction):
        implementation = getattr(libdevice_nvidia, name, None) or getattr(libdevice_amd, name, None)
        scope.set_attr(libdevice_stubs, name, implementation or functools.partial(_missing_stub, name))


def _missing_stub(name: str, *arguments: object, **keywords: object) -> object:
    raise not_executable(f"libdevice.{name}")


class _Rewriter(FunctionRewriter):  # type: ignore[misc, unused-ignore]
    ast_transformer = OperatorRewriter()

    def __init__(self, function: Callable[..., object], source: str) -> None:
        super().__init__(function)
        self.source = source

    def _prepare_source(self, lines: list[str]) -> str:
        return self.source  # with which the program may have replaced these lines

    # Upstream executes into the globals of the user's module, leaves its own names there, and loses closures.
    def _compile_and_exec(self, transformed_ast: Any) -> Any:
        outer = {**self.fn.__globals__, **inspect.getclosurevars(self.fn).nonlocals}
        members = {name: language_member(value) for name, value in outer.items()}
        namespace = {**module_names(), "range": _device_range, "print": _print, **NAMES, **members}
        exec(compile(transformed_ast, self.filename, "exec"), namespace)
        return namespace[self.fn.__name__]


def _device_range(first: Any, last: Any = None, step: Any = 1, **options: object) -> Iterator[Any]:
    # On the device a loop variable is a tensor, of 64 bits if a bound is; upstream's is Python's int.
    bounds = (0, first, step) if last is None else (first, last, step)
    wide = any(isinstance(bound, tl.tensor) and bound.dtype.primitive_bitwidth == 64 for bound in bounds)
    for value in _range(*bounds):
        yield SEMANTIC.cast(SEMANTIC.to_tensor(value), tl.int64 if wide else tl.int32)


def _range(first: Any, last: Any, step: Any) -> Iterator[Any]:
    start = first.handle.data if isinstance(first, tl.tensor) else first
    if not isinstance(start, BatchedArray):
        yield from range(operator.index(first), operator.index(last), operator.index(step))
        return
    # programs that start at different values, as a persistent kernel's do, need only take as many steps
    stride = operator.index(step)
    distance = ((last.handle.data if isinstance(last, tl.tensor) else last) - start).astype(np.int64)
    count = operator.index(np.maximum(0, -(distance // -stride)))
    for number in range(count):
        data = start.astype(np.int64) + number * stride
        yield tl.tensor(TensorHandle(data, tl.int64), tl.int64)


def _map_elementwise(function: Callable[..., Any], *arguments: Any, pack: int = 1, **options: Any) -> Any:
    if BUILDER.in_batch:
        raise OneAtATime("maps a function over elements")
    inputs = SEMANTIC.broadcast_tensors(*arguments)
    rows = [(one.handle.data.reshape(-1, int(pack)), one.dtype.scalar) for one in inputs]
    results: list[tuple[Any, ...]] = []
    for row in range(len(rows[0][0])):
        result = function(*(_scalar(data[row, lane], kind) for data, kind in rows for lane in range(pack)))
        is_single = not isinstance(result, (tuple, tl.tuple))
        results.append(tuple(map(SEMANTIC.to_tensor, (result,) if is_single else result)))
    columns = list(zip(*results, strict=True))
    blocks = tuple(_joined(columns[at : at + pack], inputs[0].type) for at in range(0, len(columns), pack))
    return blocks[0] if is_single else tl.tuple(blocks)


def _scalar(value: Any, kind: Any) -> Any:
    return tl.tensor(TensorHandle(np.array([value]), kind), kind)


def _joined(lanes: Sequence[Sequence[Any]], block: Any) -> Any:
    kind = lanes[0][0].dtype.scalar
    data = np.stack([np.concatenate([one.handle.data for one in lane]) for lane in lanes], axis=-1)
    return tl.tensor(TensorHandle(data.reshape(block.shape), kind), block.with_element_ty(kind))


def _print(*values: object, **options: Any) -> None:
    if BUILDER.in_batch:
        raise OneAtATime("prints")
    print(*values, **options)


def rewritten(function: Any) -> Callable[..., object]:
    """Rewrite a kernel, or a function that it calls, for the interpreter.

    function -- a JITFunction
    """
    return _rewritten(function.fn, function.src)


@functools.cache
def _rewritten(function: Callable[..., object], source: str) -> Callable[..., object]:
    made: Callable[..., object] = _Rewriter(function, source).rewrite_ast()
    return made


def forget() -> None:
    """Drop the functions that were rewritten."""
    _rewritten.cache_clear()


def language_member(value: object) -> object:
    """A function of the language as it is patched now; other values are returned unchanged."""
    # `from triton.language.extra.libdevice import exp` binds the function; patching its module misses that.
    module = getattr(value, "__module__", None) or ""
    if inspect.isfunction(value) and module.startswith("triton.language"):
        return getattr(sys.modules[module], value.__name__, value)
    return value


def _call_helper(self: Any, *arguments: object, **keywords: object) -> object:
    return rewritten(self)(*arguments, **keywords)


def _bind_method(self: Any, instance: object, owner: object = None) -> object:
    # x.sum(0): Triton's compiler passes x itself, so JITFunction is no descriptor.
    return self if instance is None else functools.partial(self, instance)
