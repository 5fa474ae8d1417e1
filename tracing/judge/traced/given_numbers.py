"""Gives the operators of a program the random numbers that its compiled graph drew.

Those of a kernel are uniform, normal or integers: the result of an operator is computed from them as in
compiled code. Those of an operator of a library are its result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tracing.judge.fx.no_reference import NoReference
from tracing.judge.traced.drawn_numbers import DrawnNumbers
from tracing.upstream.torch.dispatch_modes import OperatorMode, dispatch_disabled
from tracing.upstream.torch.operator_schemas import draws, is_operator, named_arguments
from tracing.upstream.torch.random_operators import bernoulli, cauchy, dropout, exponential, geometric, rrelu

_DROPOUT = "aten::native_dropout"
_RANDOM, _INTEGERS = "prims::inductor_random", "prims::inductor_randint"
_SLOPES, _RRELU = "aten::uniform", ("aten::rrelu_with_noise", "aten::rrelu_with_noise_")
# if a mean or a deviation is a tensor; it calls prims::normal, from torch 2.15 on inductor_random
_STANDARD, _NORMAL = "prims::normal", "aten::normal."
_FUNCTIONAL = {  # the operator that a graph calls in place of one that works in place
    "aten::bernoulli_.float": "aten::bernoulli.p",
    "aten::bernoulli_.Tensor": "aten::bernoulli.Tensor",
    "aten::normal_": "aten::normal_functional",
}


class OtherNumbers(NoReference):
    """The compiled graph drew other numbers than the program asks for, or in another order."""

    def __init__(self, operator: str = "") -> None:
        """operator -- that draws, if no rule computes its result from the numbers of a kernel"""
        super().__init__("random numbers that are not known")
        self.operator = operator


class GivenNumbers(OperatorMode):  # type: ignore[no-untyped-call, unused-ignore]
    """While active, operators that draw get given numbers, one call after another.

    Raises OtherNumbers for an operator that these are not the numbers of.
    """

    def __init__(self, numbers: Sequence[DrawnNumbers]) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._left = [*numbers]

    def require_all_drawn(self) -> None:
        """Raise OtherNumbers if there are more numbers than the operators have drawn."""
        if self._left:
            raise OtherNumbers

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if not is_operator(func) or not draws(func, args, kwargs):
            return func(*args, **kwargs)
        if not self._left:
            raise OtherNumbers
        drawn = self._left.pop(0)
        given = named_arguments(func, args, kwargs)
        slopes = drawn.operator == _SLOPES and func.name() in _RRELU
        if func.name().startswith(_NORMAL) and drawn.operator in (_STANDARD, _RANDOM):
            return _of_tensors(given, drawn)
        if drawn.operator in (_RANDOM, _INTEGERS) or slopes:
            return _generated(func.name(), given, drawn)
        if drawn.value.dtype == torch.bool and func.name() == _DROPOUT:
            return _of_attention(given, drawn)
        return _by_operator(func.name(), args, drawn)


def _of_attention(given: Mapping[str, Any], drawn: DrawnNumbers) -> tuple[torch.Tensor, torch.Tensor]:
    # a kernel of attention drops weights that the program, taken apart, computes
    weights, kept = given["input"], drawn.value
    if [given["p"]] != drawn.arguments or [*kept.shape] != [1] * (kept.dim() - weights.dim()) + [
        *weights.shape
    ]:
        raise OtherNumbers
    return dropout(weights, given["p"], _fresh(kept.view(weights.shape)).to(torch.float32))


def _by_operator(name: str, args: Sequence[Any], drawn: DrawnNumbers) -> torch.Tensor:
    # an operator of a library drew them in compiled code, too
    numbers = [_number(one) for one in args]
    functional = _FUNCTIONAL.get(name, name.removesuffix("_"))
    if functional != drawn.operator or numbers != [_number(one) for one in drawn.arguments[: len(args)]]:
        raise OtherNumbers
    value = _fresh(drawn.value)
    if functional == name:
        return value
    if args[0].shape != value.shape:
        raise OtherNumbers
    return torch.Tensor.copy_(args[0], value)


def _number(argument: Any) -> Any:
    return argument if isinstance(argument, int | float) else None


def _generated(name: str, given: Mapping[str, Any], drawn: DrawnNumbers) -> Any:
    rule = _RULES.get(name)
    if rule is None:
        raise OtherNumbers(name)
    if (drawn.operator == _INTEGERS) != ("randint" in name):
        raise OtherNumbers
    return rule(given, drawn)


def _fresh(value: torch.Tensor) -> torch.Tensor:
    # the program may write to it; for a mode that follows the program, it comes from outside
    with dispatch_disabled():
        return value.clone()


def _sized(given: Mapping[str, Any], drawn: DrawnNumbers, mode: str = "rand") -> torch.Tensor:
    # of a given size
    if (drawn.operator == _RANDOM and drawn.arguments[2] != mode) or [*drawn.value.shape] != [*given["size"]]:
        raise OtherNumbers
    return _fresh(drawn.value).to(given.get("dtype") or torch.get_default_dtype())


def _like(
    like: torch.Tensor, drawn: DrawnNumbers, dtype: torch.dtype | None = None, mode: str = "rand"
) -> torch.Tensor:
    # of the size of a tensor, in the order of its memory
    value = drawn.value
    if (drawn.operator == _RANDOM and drawn.arguments[2] != mode) or _order(like) != drawn.order:
        raise OtherNumbers
    if drawn.order is not None and len(drawn.order) == value.dim():
        value = value.permute(drawn.order)
    if value.dim() == 1 and like.is_contiguous() and value.numel() == like.numel():
        value = value.view(like.shape)
    if value.shape != like.shape:
        raise OtherNumbers
    return _fresh(value).to(dtype or like.dtype)


def _order(tensor: torch.Tensor) -> tuple[int, ...] | None:
    # the permutation of contiguous numbers by which they lie as a tensor does; None: it is contiguous
    dimensions = range(tensor.dim())
    from_slowest = sorted(dimensions, key=tensor.stride, reverse=True)
    if tensor.is_contiguous() or from_slowest == [*dimensions]:
        return None
    return tuple(map(from_slowest.index, dimensions))


def _dropout(given: Mapping[str, Any], drawn: DrawnNumbers) -> tuple[torch.Tensor, torch.Tensor]:
    return dropout(given["input"], given["p"], _like(given["input"], drawn))


def _bernoulli(given: Mapping[str, Any], drawn: DrawnNumbers) -> torch.Tensor:
    if not any(one.startswith("aten::lt") for one in drawn.users):
        raise OtherNumbers  # dropout of torch's C++, which on a CPU calls bernoulli, and is traced otherwise
    own = given["self"]
    return bernoulli(given.get("p", own), _like(own, drawn, torch.float32)).to(own.dtype)


def _exponential(given: Mapping[str, Any], drawn: DrawnNumbers) -> torch.Tensor:
    return exponential(given["lambd"], _like(given["self"], drawn))


def _uniform(given: Mapping[str, Any], drawn: DrawnNumbers) -> torch.Tensor:
    low, high = float(given["from"]), float(given["to"])
    return _like(given["self"], drawn) * (high - low) + low


def _rrelu(given: Mapping[str, Any], drawn: DrawnNumbers) -> torch.Tensor:
    # compiled code draws a slope for each element, and uses those of elements that are not positive
    own, low, high = given["self"], given["lower"], given["upper"]
    if drawn.operator != _SLOPES:
        slopes = _like(own, drawn) * (high - low) + low
    elif drawn.value.shape == own.shape and [low, high] == [*drawn.arguments[1:3]]:
        slopes = _fresh(drawn.value)
    else:
        raise OtherNumbers
    result, used = rrelu(own, slopes)
    given["noise"].copy_(used)
    return result


def _normal(given: Mapping[str, Any], drawn: DrawnNumbers) -> torch.Tensor:
    mean, deviation = float(given["mean"]), float(given["std"])
    return _like(given["self"], drawn, mode="randn") * deviation + mean


def _of_tensors(given: Mapping[str, Any], drawn: DrawnNumbers) -> torch.Tensor:
    # the mean, the deviation or both are tensors
    mean, deviation = given["mean"], given["std"]
    if drawn.order is not None or (drawn.operator == _RANDOM and drawn.arguments[2] != "randn"):
        raise OtherNumbers
    result: torch.Tensor = _fresh(drawn.value) * deviation + mean
    tensors = [one for one in (mean, deviation) if isinstance(one, torch.Tensor)]
    if not tensors or result.shape != drawn.value.shape or result.dtype != drawn.value.dtype:
        raise OtherNumbers
    return result


def _floating(given: Mapping[str, Any], drawn: DrawnNumbers) -> torch.Tensor:
    own = given["self"]
    if not own.is_floating_point():
        raise OtherNumbers
    return _like(own, drawn)


def _integers(given: Mapping[str, Any], drawn: DrawnNumbers) -> torch.Tensor:
    if [given.get("low", 0), given["high"]] != [*drawn.arguments[:2]]:
        raise OtherNumbers
    if "self" in given:
        return _like(given["self"], drawn, given["dtype"])
    dtype = given["dtype"] if isinstance(given["dtype"], torch.dtype) else torch.int64
    return _sized({**given, "dtype": dtype}, drawn)


def _in_place(rule: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda given, drawn: given["self"].copy_(rule(given, drawn))


_RULES: Mapping[str, Callable[[Mapping[str, Any], DrawnNumbers], Any]] = {
    _DROPOUT: _dropout,
    "aten::bernoulli": _bernoulli,
    "aten::bernoulli.p": _bernoulli,
    "aten::bernoulli_.float": _in_place(_bernoulli),
    "aten::exponential_": _in_place(_exponential),
    "aten::uniform_": _in_place(_uniform),
    "aten::rrelu_with_noise": _rrelu,
    "aten::rrelu_with_noise_": _in_place(_rrelu),
    "aten::normal_": _in_place(_normal),
    "aten::log_normal_": _in_place(lambda given, drawn: _normal(given, drawn).exp()),
    "aten::geometric_": _in_place(lambda given, drawn: geometric(given["p"], _floating(given, drawn))),
    "aten::cauchy_": _in_place(
        lambda given, drawn: cauchy(given["median"], given["sigma"], _floating(given, drawn))
    ),
    "aten::rand": _sized,
    "aten::rand_like": lambda given, drawn: _like(given["self"], drawn, given["dtype"]),
    "aten::randn": lambda given, drawn: _sized(given, drawn, "randn"),
    "aten::randn_like": lambda given, drawn: _like(given["self"], drawn, given["dtype"], "randn"),
    "aten::randint": _integers,
    "aten::randint.low": _integers,
    "aten::randint_like": _integers,
    "aten::randint_like.low_dtype": _integers,
}
