"""The compiled form of `Operators`: it records operators whose arguments and layouts it knows in 2 µs.

All others reach `Operators` itself, which teaches the compiled form what they read and write.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tracing.launch import hooks
from tracing.native.extension import NotCompiledError, extension
from tracing.operators.allocators import CompiledAllocator
from tracing.operators.dispatch import Operators
from tracing.operators.effects import Effect
from tracing.operators.text import arguments_text
from tracing.upstream.torch.operator_schemas import is_operator, schema_of

_PYTHON, _IGNORED, _RECORDED = range(3)  # known_operators.h's Effect::Kind


@contextmanager
def observed(mode: Operators, calls: Any) -> Iterator[CompiledAllocator | None]:
    """While active, operators that reach `mode` are recorded by its compiled form, if there is a compiler.

    calls -- the OperatorCalls that is the listener of `mode`

    Gives the compiled form of what intercepts allocators of generated code.
    """
    try:
        module = extension("operator_observer")
    except NotCompiledError:
        yield None
        return

    def teach(func: Any, effect: Effect | None, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if is_operator(func) and module.asks(func.name()):
            module.learn(*_facts(func, effect, args, kwargs))

    observer = module.Observer(mode, calls, hooks.thread_state())
    mode.teach = teach
    if calls.digests is not None:
        calls.digests.compiled_digest = module.digest  # also of operators that Python records
    try:
        yield functools.partial(module.allocator, observer)
    finally:
        mode.teach = None
        observer.close()


def _facts(
    func: Any, effect: Effect | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    # the arguments of operator_observer.cpp's `learn`
    if effect is None:
        return None, _IGNORED, [], [], [], -1, False, False, ""
    if effect.collective or effect.resizes:
        return effect, _PYTHON, [], [], [], -1, False, False, ""
    reads, writes = [], list(effect.positions)
    for position, argument in enumerate(schema_of(func).arguments):
        if argument.kwarg_only and argument.name in effect.keywords:
            writes.append(position)
        elif argument.kwarg_only or position not in effect.unread:
            reads.append(position)
    return (
        effect,
        _RECORDED,
        [] if effect.allocates else reads,
        writes,
        list(effect.outputs),
        -1 if effect.training is None else effect.training,
        effect.check,
        effect.allocates,
        arguments_text(effect, args, kwargs, form=True),
    )
