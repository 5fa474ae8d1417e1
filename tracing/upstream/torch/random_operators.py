"""What torch.compile makes of operators that draw random numbers: functions of uniform ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._decomp import decomposition_table

from tracing.upstream.contract import require
from tracing.upstream.torch.dispatch_modes import OperatorMode

aten = torch.ops.aten


def dropout(input: torch.Tensor, p: float, uniform: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`aten::native_dropout`: the result, and what is kept.

    input, uniform -- [*]
    """
    kept = uniform > p
    return kept * input * (1.0 / (1.0 - p)), kept


def bernoulli(chance: torch.Tensor | float, uniform: torch.Tensor) -> torch.Tensor:
    """[*] bool, `aten::bernoulli`.

    uniform -- [*] float32
    """
    return uniform < chance


def exponential(rate: float, uniform: torch.Tensor) -> torch.Tensor:
    """[*] `aten::exponential`."""
    least = torch.finfo(uniform.dtype).eps / 2
    return torch.where(uniform >= 1.0 - least, -least, uniform.log()) * (-1.0 / rate)


def geometric(chance: float, uniform: torch.Tensor) -> torch.Tensor:
    """[*] `aten::geometric`."""
    return torch.floor(torch.log1p(-uniform) / math.log1p(-chance)) + 1


def cauchy(median: float, sigma: float, uniform: torch.Tensor) -> torch.Tensor:
    """[*] `aten::cauchy`."""
    return median + sigma * torch.tan(math.pi * (uniform - 0.5))


def rrelu(input: torch.Tensor, slopes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`aten::rrelu_with_noise` in training: the result, and the factor of each element.

    input, slopes -- [*] of one dtype, or slopes of a narrower one
    """
    drops = input <= 0
    return torch.where(drops, input * slopes, input), torch.where(drops, slopes, 1)


class _Uniform(OperatorMode):  # type: ignore[no-untyped-call, unused-ignore]
    def __init__(self, numbers: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._numbers = numbers

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in (aten.rand.default, aten.rand_like.default, aten.uniform.default):
            return self._numbers.clone()
        return func(*args, **(kwargs or {}))


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    from torch._inductor.decomposition import rrelu_with_noise_functional

    x, uniform = torch.linspace(0.1, 0.9, 5), torch.tensor([0.1, 0.3, 0.5, 0.7, 1.0])

    def torchs(operator: Any, *args: Any) -> Any:
        decomposed: Callable[..., Any] = decomposition_table[operator]
        with _Uniform(uniform):
            return decomposed(*args)

    own, theirs = dropout(x, 0.3, uniform), torchs(aten.native_dropout.default, x, 0.3, True)
    require(all(map(torch.equal, own, theirs)), "dropout that keeps what is larger")
    kept = bernoulli(x, uniform).to(x.dtype)
    require(torch.equal(kept, torchs(aten.bernoulli.default, x)), "1 where a number is less than its chance")
    steps = torchs(aten.geometric.default, x, 0.3)
    require(torch.equal(geometric(0.3, uniform), steps), "numbers of the geometric distribution")
    wide = torchs(aten.cauchy.default, x, 0.5, 2.0)
    require(torch.equal(cauchy(0.5, 2.0, uniform), wide), "numbers of the Cauchy distribution")
    signed = x - 0.5
    with _Uniform(uniform):
        theirs = rrelu_with_noise_functional(signed, torch.empty(5), 0.1, 0.4, True)
    require(all(map(torch.equal, rrelu(signed, uniform), theirs)), "slopes of what is not positive")
    rate = exponential(2.0, uniform)
    require(torch.equal(rate, torchs(aten.exponential.default, x, 2.0)), "logarithms of uniform numbers")
