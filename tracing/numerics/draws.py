"""The draws of random numbers that a program makes through torch's operators, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from tracing.operators.dispatch import Operators
from tracing.operators.effects import Effect, effect_of
from tracing.upstream.torch.operator_schemas import called_with_state, draws

_AS = {  # operators, and those as which torch.compile traces them: both take the same numbers
    "uniform": "rand",
    "normal": "randn",
    "random": "randint",
    "native_dropout": "bernoulli",
    "_fused_dropout": "bernoulli",
}
_BITS = "bernoulli"  # its numbers do not depend on the dtype of its result


@dataclass(frozen=True, slots=True)
class Draw:
    """One call of an operator that draws; equal draws from equal generators give equal numbers."""

    operator: str  # "rand", also for rand_like and uniform_
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # of dimensions that are longer than 1: numbers are drawn in the order of memory
    dtype: str  # empty: the numbers do not depend on it

    @property
    def text(self) -> str:
        """`rand of (16, 32), strides (32, 1)`."""
        dtype = f" {self.dtype.removeprefix('torch.')}" if self.dtype else ""
        return f"{self.operator} of{dtype} {self.shape}, strides {self.strides}"


@contextmanager
def draws_noted() -> Iterator[list[Draw]]:
    """While active, the draws of this thread and of its backward pass, also of the code compiled for it."""
    with _Draws() as draws_of_operators:
        yield draws_of_operators.noted


def unlike(compiled: Sequence[Draw], eager: Sequence[Draw]) -> str:
    """The first draw of compiled code that gives other numbers than eager's, as text; empty: there is none.

    Draws of a kernel, or of C++ code that passes no dispatcher, are missing: then eager draws more.
    """
    for ours, theirs in zip_longest(compiled, eager):
        if ours != theirs:
            return f"compiled draws {_text(ours)}, eager {_text(theirs)}"
    return ""


def _text(draw: Draw | None) -> str:
    return draw.text if draw is not None else "nothing more by an operator"


class _Draws(Operators):  # type: ignore[no-untyped-call, unused-ignore]
    def __init__(self) -> None:
        self.noted: list[Draw] = []
        super().__init__(self)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if (called := called_with_state(func, args, result)) is not None:
            operator, given, drawn = called
            self.after(effect_of(operator), given, kwargs or {}, drawn, None)
        return result

    def passes_over(self) -> bool:
        return False

    def looks_before(self, effect: Effect) -> bool:
        return False

    def before(self, effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return None

    def after(
        self, effect: Effect | None, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, before: Any
    ) -> None:
        if effect is None or not effect.random or not draws(effect.function, args, kwargs):
            return
        for drawn in effect.written(args, kwargs, result)[:1]:
            operator = _operator(effect.name, drawn.device.type)
            strides = tuple(
                stride for stride, size in zip(drawn.stride(), drawn.shape, strict=True) if size > 1
            )
            dtype = "" if operator == _BITS else str(drawn.dtype)
            self.noted.append(Draw(operator, tuple(drawn.shape), strides, dtype))


def _operator(name: str, device: str) -> str:
    name, _, overload = name.removeprefix("aten::").partition(".")
    name = re.sub(r"_like$|_functional$|_$", "", name)
    # torch.compile compares numbers with a tensor of probabilities; on a GPU eager draws others for it
    as_numbers = name == _BITS and overload in ("", "Tensor") and device == "cpu"
    return "rand" if as_numbers else _AS.get(name, name)
