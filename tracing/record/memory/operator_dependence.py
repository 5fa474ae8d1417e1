"""Which results of an operator depend on given elements of its arguments.

The operator is executed on copies of its arguments, with several contents of these elements: a result that
is not the same for all contents depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tracing.digest.host import element_bytes
from tracing.interpreter.gates import Mask
from tracing.launch.memory.memory_block import Bytes
from tracing.launch.tensors import tensors_in
from tracing.operators.effects import Effect

_FLOATS = (float("nan"), float("inf"), float("-inf"), 0.0, 1.0)
# parameters with a name like these address memory: numbers out of their range are not tried
_ADDRESSING = ("index", "indices", "target", "offset", "length", "size", "repeats", "segment")


@dataclass(frozen=True, slots=True)
class Dependence:
    """The results of an operator that depend on some elements of its arguments."""

    written: tuple[Mask, ...]  # of each tensor that it writes, as `Effect.written`: [elements], logical order
    host: bool  # also a number or a shape that Python receives


@dataclass(frozen=True, slots=True)
class _Outcome:
    written: tuple[Bytes, ...]  # [elements, bytes of one]
    plain: str  # shapes, and what is no tensor


def dependence_of(
    effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any], elements: Mapping[int, Mask]
) -> Dependence | None:
    """What an operator of ATen, which is not executed yet, would make of other contents of some elements.

    elements -- by id of a tensor among the arguments: [elements] in logical order, True for those

    None: the operator does not run on copies of its arguments. Cost: six executions of the operator.
    """
    outcomes = []
    with _same_random_numbers(args, kwargs) as rewind:
        # the own contents too: of two runs that differ, one differs from the other contents
        for number in (None, *range(len(_FLOATS))):
            rewind()
            with suppress(Exception):  # such contents are no valid argument
                outcomes.append(_executed(effect, args, kwargs, elements, number))
    if len(outcomes) < 2:
        return None
    first = outcomes[0]
    if any(one.plain != first.plain for one in outcomes):
        return Dependence((), host=True)
    masks = [np.zeros(len(one), np.bool_) for one in first.written]
    for outcome in outcomes[1:]:
        for mask, one, other in zip(masks, first.written, outcome.written, strict=True):
            mask |= (one != other).any(axis=1)
    return Dependence(tuple(masks), host=False)


def _executed(
    effect: Effect,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    elements: Mapping[int, Mask],
    number: int | None,
) -> _Outcome:
    addressing = torch.Tag.dynamic_output_shape in effect.function.tags or any(
        part in name for name in effect.parameters for part in _ADDRESSING
    )
    copies: dict[int, torch.Tensor] = {}
    for tensor in tensors_in([*args, *kwargs.values()]):
        if id(tensor) not in copies:
            copy = copies[id(tensor)] = tensor.detach().clone()
            mask = elements.get(id(tensor))
            if mask is not None and number is not None:
                at = torch.from_numpy(mask.copy()).reshape(copy.shape)
                copy.masked_fill_(at, _content(copy.dtype, number, addressing=addressing))
    args, kwargs = _replaced(tuple(args), copies), _replaced(dict(kwargs), copies)
    result = effect.function(*args, **kwargs)
    written = effect.written(args, kwargs, result)
    every = result if isinstance(result, (list, tuple)) else [result]
    plain = [repr(one) for one in every if not isinstance(one, (torch.Tensor, list, tuple))]
    shapes = [str(tuple(one.shape)) for one in written]
    return _Outcome(tuple(map(_elements, written)), " ".join(plain + shapes))


def _elements(tensor: torch.Tensor) -> Bytes:
    return element_bytes(tensor).reshape(tensor.numel(), tensor.element_size())


def _content(dtype: torch.dtype, number: int, *, addressing: bool) -> float | int | bool:
    if dtype.is_floating_point or dtype.is_complex:
        return _FLOATS[number]
    if dtype == torch.bool or addressing:
        return number % 2
    limits = torch.iinfo(dtype)
    return (0, 1, limits.min, limits.max, 2)[number]


def _replaced(value: Any, copies: Mapping[int, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return copies[id(value)]
    if isinstance(value, dict):
        return {name: _replaced(one, copies) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_replaced(one, copies) for one in value])
    return value


@contextmanager
def _same_random_numbers(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Callable[[], None]]:
    # the call that is passed restores the state of the generators, as does the end
    passed = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.Generator)]
    states = [(one, one.get_state()) for one in (torch.default_generator, *passed)]

    def rewind() -> None:
        for generator, state in states:
            generator.set_state(state)

    try:
        yield rewind
    finally:
        rewind()
