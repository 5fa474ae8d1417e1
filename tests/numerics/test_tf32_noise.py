"""The reference's noise of factors that a GPU rounds to TF32, in one manner or another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from tracing.numerics import tf32
from tracing.numerics.reference import Expected, reference
from tracing.numerics.verdict import judge
from tracing.program.device import Device
from tracing.upstream.torch.float32_precision import PRODUCTS as PRODUCTS_OF_TORCH
from tracing.upstream.torch.float32_precision import with_float32_precision

SHAPE = (4, 8, 6, 6)


def values(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


X, W, B, M = values(*SHAPE), values(8, 8, 3, 3, seed=1), values(8, seed=2), values(6, 6, seed=3)


def cut(x: torch.Tensor) -> torch.Tensor:
    return (x.contiguous().view(torch.int32) & -(1 << 13)).view(torch.float32)


def nearest(x: torch.Tensor) -> torch.Tensor:
    return cut((x.contiguous().view(torch.int32) + (1 << 12)).view(torch.float32))


def expected(run: Callable[[], torch.Tensor], *allowed: str) -> Expected:
    return reference(lambda: {"y": run()}, tf32=allowed)["y"]


def in_inference_mode() -> torch.Tensor:
    with torch.inference_mode():
        return F.linear(X, M)


def through_an_output() -> torch.Tensor:
    return torch.addmm(torch.zeros(6, 6), M, X[0, 0], out=torch.empty(6, 6))


def in_place() -> torch.Tensor:
    return torch.zeros(6, 6).addmm_(M, X[0, 0])


PRODUCTS: dict[str, Callable[[Callable[[torch.Tensor], torch.Tensor]], torch.Tensor]] = {
    "convolution": lambda t: F.conv2d(t(X), t(W), B, padding=1),
    "product": lambda t: t(X) @ t(M),
    "equal factors": lambda t: t(X.abs()) @ t(torch.full((6, 5), 1 / 3)),
    "sums of many": lambda t: t(X.abs().reshape(2, -1)) @ t(W.abs().reshape(-1, 1)[:576]),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("how", [cut, nearest])
def test_a_product_of_rounded_factors_is_right_only_if_settings_allow_it(
    name: str, how: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    def run() -> torch.Tensor:
        return PRODUCTS[name](lambda x: x)

    allowed, sharp = expected(run, "matmul", "conv"), expected(run, "rnn")
    rounded = PRODUCTS[name](how)

    assert judge(rounded, run(), allowed).verdict == "within rounding"
    assert judge(rounded, run(), sharp).verdict == "compiled is off"
    assert judge(rounded * 1.1, run(), allowed).verdict == "compiled is off"


@pytest.mark.parametrize("run", [in_inference_mode, through_an_output, in_place])
def test_a_product_is_given_the_noise_of_tf32(run: Callable[[], torch.Tensor]) -> None:
    noise, sharp = expected(run, "matmul").spread, expected(run).spread

    assert noise.mean() > 100 * sharp.mean()


def test_numbers_that_tf32_has_are_multiplied_exactly() -> None:
    whole = torch.arange(36.0).reshape(6, 6)

    assert not expected(lambda: whole @ whole, "matmul").spread.mean() > 1e-3


def test_the_gradient_of_a_bias_is_a_sum_of_float32() -> None:
    def gradient(i: int) -> Callable[[], torch.Tensor]:
        def run() -> torch.Tensor:
            given = [one.clone().requires_grad_() for one in (X, W, B)]
            return torch.autograd.grad(F.conv2d(*given), given, X[:, :, 1:5, 1:5])[i]

        return run

    of_weight, of_bias = (expected(gradient(i), "conv").spread.mean() for i in (1, 2))

    assert of_weight > 1e-3 and of_bias < 1e-4


def test_a_virtual_gpu_has_no_tf32() -> None:
    with with_float32_precision("high", PRODUCTS_OF_TORCH), Device("sm_90").active():
        noise = reference(lambda: {"y": X.cuda() @ M.cuda()})["y"].spread

    assert noise.mean() < 1e-4


def test_a_device_with_tf32_has_the_noise_that_the_settings_of_the_process_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tf32, "has_tf32", lambda tensor: True)

    def spread(*allowed: str) -> float:
        with with_float32_precision("", allowed):
            return float(reference(lambda: {"y": F.conv2d(X, W)})["y"].spread.mean())

    assert spread("conv") > 1e-3 and spread("rnn") < 1e-4
