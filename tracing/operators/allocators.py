"""The allocators of Inductor's generated code, which bypass torch's dispatcher.

A generated module copies the allocators into its globals when it is loaded. While they are intercepted,
functions of this module replace them in every generated module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch

from tracing.launch import hooks
from tracing.launch.hidden_computation import HiddenComputation
from tracing.operators.dispatch import OperatorListener
from tracing.operators.effects import Effect
from tracing.operators.text import arguments_text
from tracing.upstream.inductor.code import allocators_replaced, generated_modules
from tracing.upstream.patch import Method

Allocate: TypeAlias = Callable[..., torch.Tensor]
# (allocate, effect, the text of its arguments, what records a call) -> what replaces it
CompiledAllocator: TypeAlias = Callable[[Allocate, Effect, Callable[..., str], Callable[..., None]], Allocate]

# What these are called in generated code; torch._C._dynamo.guards has them with a dash before. A torch has
# those of its devices, and of its version.
_NAMES = ("empty_strided_cpu", "empty_strided_cpu_pinned", "empty_strided_cuda", "empty_strided_xpu",
          "empty_strided_mtia")  # fmt: skip
_EFFECTS = {
    name: Effect(f"inductor::{name}", outputs=(0,), allocates=True, parameters=("size", "stride", "dtype"))
    for name in _NAMES
}


@contextmanager
def watched(listener: OperatorListener, compiled: CompiledAllocator | None = None) -> Iterator[None]:
    """While active, `listener` receives each call of these allocators as that of an operator.

    compiled -- records the calls whose layouts it knows; None: `listener` receives all
    """
    originals: dict[int, tuple[Allocate, Allocate]] = {}  # by id of ours, which is kept, too

    def seen(name: str) -> Callable[[Method], Method]:
        def wrapper(allocate: Method) -> Method:
            ours = _seen(allocate, _EFFECTS[name], listener, compiled)
            originals[id(ours)] = ours, allocate
            return ours

        return wrapper

    for scope in map(vars, generated_modules()):
        for name in _NAMES:
            if name in scope:
                scope[name] = seen(name)(scope[name])
    try:
        with allocators_replaced(_NAMES, seen):
            yield
    finally:
        _restore(originals)


def _seen(
    allocate: Allocate, effect: Effect, listener: OperatorListener, compiled: CompiledAllocator | None
) -> Allocate:
    def record(args: Sequence[Any], made: torch.Tensor) -> None:
        if hooks.shown() and not listener.passes_over():
            with HiddenComputation():
                listener.after(effect, args, {}, made, None)

    def allocated(*args: Any) -> torch.Tensor:
        made = allocate(*args)
        record(args, made)
        return made

    if compiled is None:
        return allocated
    return compiled(allocate, effect, lambda *args: arguments_text(effect, args, {}), record)


def _restore(originals: dict[int, tuple[Allocate, Allocate]]) -> None:
    for scope in [vars(module) for module in generated_modules()]:
        for name in _NAMES:
            if id(scope.get(name)) in originals:
                scope[name] = originals[id(scope[name])][1]
