"""Execute one launch of a compiled Triton kernel on CPU tensors.

Triton's own interpreter (`triton.runtime.interpreter`) does the work. It supports only functions decorated
under TRITON_INTERPRET=1. This package lets it execute ordinary `JITFunction`s, and replaces its wrong or slow
parts:

- bfloat16: upstream adds the bit patterns and truncates; here it is float32, rounded to nearest even;
- libdevice: upstream's functions have no bodies and return None; here they are torch's CPU functions;
- reductions and scans with any combine function: upstream loops over elements; here they are vectorised;
- the patched language: restored after each launch, so that the next compile in this process works.

Supports Triton 3.6 to 3.9, through `tracing.upstream.triton.interpreter`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import torch
import triton.language as tl

from tracing.errors import Problem
from tracing.interpreter import language, waiting
from tracing.interpreter.batch import choice
from tracing.interpreter.batch.choice import executed_together, one_program_at_a_time
from tracing.interpreter.blas_threads import one_blas_thread
from tracing.interpreter.builder import BUILDER, not_executable
from tracing.interpreter.call_arguments import bound
from tracing.interpreter.exclusion import LANGUAGE, compiles_wait
from tracing.interpreter.guard import guarded, tensors_of
from tracing.interpreter.language import interpreted, language_member, rewritten
from tracing.interpreter.pointers import name_argument
from tracing.interpreter.refusal import refusal
from tracing.interpreter.roundings import OtherRoundings
from tracing.upstream.patch import replaced
from tracing.upstream.torch.dispatch_modes import dispatch_disabled, functions_disabled
from tracing.upstream.triton.interpreter import TensorHandle, implicit_tensor, numpy_dtype, pointer
from tracing.upstream.triton.jit import GluonJITFunction

__all__ = [
    "backwards",
    "compiles_wait",
    "execute",
    "forget",
    "launch",
    "one_program_at_a_time",
    "permuted",
    "rounded_otherwise",
    "undefined_loads",
]


def execute(
    source: Any,
    arguments: Sequence[object],
    grid: tuple[int, int, int],
    *,
    debug: bool = False,
    sanitize_overflow: bool = False,
) -> None:
    """Run every program of one launch, in the order of the grid, in place on CPU tensors.

    source    -- triton.compiler.ASTSource of the compiled kernel: function, signature and constants
    arguments -- one value for each parameter of the kernel, constexprs included, as for a launcher
    grid      -- programs along x, y and z
    debug     -- the kernel was compiled with debug=True: tl.device_assert raises AssertionError

    Integers and floats enter with the types of the compiled signature: arithmetic promotes as on the device.
    Programs that take the same branches and share no memory that they write are executed together; the
    results are those of one program after another (`tracing.interpreter.batch`).

    Cost: 2-3 ms a launch, and 0.5-1.2 ms a batch of a dozen operations on up to 4096 elements in all.

    One launch runs at a time, because the language is patched process-wide and a backward pass may have its
    own thread. `compiles_wait` excludes compiles on other threads meanwhile.

    Memory outside of the storages of the arguments and of all tensors in use is not accessed: loads give
    zeros, and stores do nothing. If watchers watch the thread (`tracing.interpreter.gates`), they decide
    instead.

    Raises Problem for features that can be compiled but not executed here: Gluon, inline assembly, rare
    functions of libdevice, programs that wait for later ones.
    """
    if isinstance(source.fn, GluonJITFunction):
        raise not_executable(f"the Gluon kernel {source.fn.__name__}")
    quiet = np.errstate(all="ignore")
    checked = BUILDER.compiled_with(debug=debug, sanitize_overflow=sanitize_overflow)
    reset = replaced(BUILDER, "accessed", None)
    with LANGUAGE, checked, reset, interpreted(), _unobserved(), guarded(arguments), one_blas_thread(), quiet:
        call = bound(source.fn.fn, _typed_arguments(source, arguments))
        program = rewritten(source.fn)
        BUILDER.set_grid_dim(*grid)
        programs = [(int(x), int(y), int(z)) for x, y, z in _programs(*grid)]

        def run(indices: tuple[Any, ...]) -> None:
            BUILDER.grid_idx = indices
            waiting.changed()
            program(*call.args, **call.kwargs)

        with replaced(BUILDER, "in_batch", True):
            done = executed_together(source.fn.fn, programs, run, list(tensors_of(arguments)))
        if not done:
            for index in programs:
                try:
                    run(index)
                except waiting.WaitsForever as waits:
                    raise _problem(waits, source.fn, index, arguments) from None
                except Exception as error:
                    if (refused := refusal(error, source.fn.__name__)) is not None:
                        raise refused from error
                    raise


def _problem(
    waits: waiting.WaitsForever, function: Any, program: tuple[int, ...], arguments: Sequence[object]
) -> Problem:
    named = zip(function.arg_names, arguments, strict=True)
    tensors = ((name, one) for name, value in named for one in tensors_of([value]))
    return waits.problem(function.__name__, program, tensors)


def launch(
    function: Any,
    values: Mapping[str, object],
    constants: Collection[str],
    grid: tuple[int, int, int],
    options: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Execute one launch of a function that was not compiled; as `execute`.

    function  -- a JITFunction
    values    -- of all its parameters, by name
    constants -- its tl.constexpr arguments, and arguments that Triton specialised on their value; the second
                 member of a tuple `t` is `t.1`
    options   -- compiler options, of which `debug` and `sanitize_overflow` change what is executed

    Raises KeyError for a parameter without a value.
    """
    source = SimpleNamespace(
        fn=function,
        constants={},  # the values contain them
        signature={
            one.name: _type_of(one.name, values[one.name], constants, one.annotation_type)
            for one in function.params
        },
    )
    checks = {
        "debug": bool(options.get("debug") or function.debug),
        "sanitize_overflow": bool(options.get("sanitize_overflow")),
    }
    execute(source, [values[name] for name in function.arg_names], grid, **checks)


def _type_of(name: str, value: object, constants: Collection[str], annotated: str = "") -> object:
    # the value that Triton's own specialisation has
    if name in constants:
        return "constexpr"
    if isinstance(value, tuple):
        return tuple(_type_of(f"{name}.{i}", member, constants) for i, member in enumerate(value))
    if annotated or isinstance(value, torch.Tensor):
        return annotated or "*"
    if isinstance(value, bool):
        return "u1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
    return "fp32"


def _programs(*grid: int) -> Iterable[tuple[int, ...]]:
    return np.ndindex(*grid)


def permuted(seed: int) -> AbstractContextManager[None]:
    """While active, the programs of each launch run in another order: GPUs guarantee none."""

    def programs(*grid: int) -> Iterable[tuple[int, ...]]:
        indices = list(np.ndindex(*grid))
        random.Random(seed).shuffle(indices)
        return indices

    return replaced(sys.modules[__name__], "_programs", programs)


def backwards() -> AbstractContextManager[None]:
    """While active, the programs of each launch run in the reverse order."""

    def programs(*grid: int) -> Iterable[tuple[int, ...]]:
        indices: list[tuple[int, ...]] = list(np.ndindex(*grid))
        return indices[::-1]

    return replaced(sys.modules[__name__], "_programs", programs)


def undefined_loads(byte: int) -> AbstractContextManager[None]:
    """While active, a load without `other` gives this byte, repeated, where its mask is false.

    Triton leaves these elements undefined.
    """
    return replaced(BUILDER, "undefined_byte", byte)


def outside_loads(byte: int) -> AbstractContextManager[None]:
    """While active, a load from memory outside of all tensors gives this byte, repeated."""
    return replaced(BUILDER, "outside_byte", byte)


@contextmanager
def rounded_otherwise(seed: int) -> Iterator[None]:
    """While active, each operation on floats is rounded as another correct implementation may round it.

    Programs run in another order, too, which changes the order of what atomics add.
    """
    with replaced(BUILDER, "roundings", OtherRoundings(seed)), permuted(seed):
        yield


def forget() -> None:
    """Drop the rewritten functions: a kernel's globals may have changed before the next use."""
    language.forget()
    choice.forget()


@contextmanager
def _unobserved() -> Iterator[None]:
    # libdevice runs torch operators; they are the interpreter's, not the program's, so no mode may see them.
    with dispatch_disabled(), functions_disabled(), torch.no_grad():
        yield


def _typed_arguments(source: Any, arguments: Sequence[object]) -> dict[str, object]:
    function = source.fn
    constants = {
        function.arg_names[path[0]]: value for path, value in source.constants.items() if len(path) == 1
    }
    values = dict(zip(function.arg_names, arguments, strict=True))
    for parameter in function.params:
        name = parameter.name
        # Inductor passes None for a constant that it has compiled in.
        value = constants.get(name) if values.get(name) is None else values[name]
        values[name] = _typed(name, value, source.signature.get(name, "constexpr"))
    return values


def _typed(name: str, value: Any, type_name: Any) -> object:
    if type_name == "constexpr":  # declared, or specialised by Triton: an integer 1, None
        return language_member(value)
    if isinstance(value, tuple):
        members = enumerate(zip(value, type_name, strict=True))
        items = [_typed(f"{name}.{i}", member, kind) for i, (member, kind) in members]
        make: Any = type(value)
        return make(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, (int, float)):
        dtype = tl.str_to_ty(type_name, None)
        if dtype == tl.bfloat16:
            return tl.tensor(BUILDER.get_bf16(value), dtype)
        data = np.array([value]).astype(numpy_dtype(dtype))
        return tl.tensor(TensorHandle(data, dtype), dtype)
    if isinstance(value, torch.Tensor) and len(type_name) > 1:
        return name_argument(pointer(value, type_name), name)  # as on a GPU, whatever dtype the tensor has
    return name_argument(implicit_tensor(value), name)
