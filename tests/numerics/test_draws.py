"""The draws of random numbers of eager and of compiled code."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch._inductor.config as inductor
import torch.nn.functional as functional
from torch.utils.checkpoint import checkpoint

from tracing.numerics.draws import Draw, draws_noted, unlike
from tracing.upstream.torch.dynamo import forget_compiled

T = torch.Tensor
RAND, RANDN = Draw("rand", (2,), (1,), "torch.float32"), Draw("randn", (2,), (1,), "torch.float32")


def repeated(x: T) -> T:
    return checkpoint(lambda y: functional.dropout(y.sin(), 0.3) * functional.dropout(y, 0.1), x)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: functional.dropout(x, 0.3),
        lambda x: torch.bernoulli(x.sigmoid()),
        lambda x: torch.empty_like(x).bernoulli_(0.3),
        lambda x: torch.empty_like(x).uniform_() + torch.rand_like(x.double()),
        lambda x: torch.empty_like(x).normal_(1, 2) * torch.normal(x, x.abs()),
        repeated,
    ],
)
def test_compiled_code_that_draws_by_torchs_operators_draws_as_eager_does(draw: Callable[[T], T]) -> None:
    forget_compiled()
    x = torch.randn(8, 6, requires_grad=draw is repeated)
    noted = []
    for function in (draw, torch.compile(draw)):
        torch.manual_seed(0)
        with inductor.patch(fallback_random=True), draws_noted() as draws:
            result = function(x)
            if draw is repeated:
                result.sum().backward()
        noted.append((draws, result))

    (eager, expected), (compiled, actual) = noted
    assert eager and unlike(compiled, eager) == ""
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize(
    ("compiled", "eager", "how"),
    [
        ([RAND], [RANDN], "compiled draws rand of float32 (2,), strides (1,), eager randn of float32"),
        ([RAND], [RAND, RANDN], "compiled draws nothing more by an operator, eager randn"),
        ([RAND, RANDN], [RAND], "strides (1,), eager nothing more by an operator"),
    ],
)
def test_the_first_draw_that_differs_is_named(compiled: list[Draw], eager: list[Draw], how: str) -> None:
    assert how in unlike(compiled, eager)


def test_what_draws_nothing_is_no_draw() -> None:
    with draws_noted() as draws:
        functional.dropout(torch.ones(3), 0.0)
        torch.ones(3).sin()

    assert draws == []
