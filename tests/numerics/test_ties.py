"""Comparisons, argmax and argmin of equal elements: another result is off, unless rounding decides."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracing.numerics.reference import MORE_SAMPLES, Expected, reference
from tracing.numerics.verdict import judge


def expected(call: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Expected:
    return reference(lambda: {"indices": call(x)})["indices"]


CALLS = {
    "argmax": lambda x: x.argmax(1),
    "argmin": lambda x: x.argmin(-1, keepdim=True),
    "max": lambda x: x.max(1).indices,
    "min": lambda x: x.t().min(dim=0, keepdim=True).indices,
    "flat": lambda x: x.argmax(),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
def test_another_of_several_equal_elements_is_off(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor([[-2, 3, 3, 1, -2, 3], [0, 0, 0, 0, 0, 0], [-1, -5, -1, -5, -1, -1]]).to(dtype)
    right = CALLS[name](x)
    other = right + 1

    reference_of_it = expected(CALLS[name], x)

    assert judge(right, right, reference_of_it).right
    assert judge(other, right, reference_of_it).verdict == "compiled is off"


def test_nan_is_the_largest_and_the_first_one_is_returned() -> None:
    x = torch.tensor([[1.0, torch.nan, 3.0, torch.nan]])
    right = x.argmax(1)

    assert judge(right + 2, right, expected(CALLS["argmax"], x)).verdict == "compiled is off"


def test_where_rounding_decides_either_is_right() -> None:
    x = torch.tensor([[0.37, 0.11, 0.93], [0.93, 0.11, 0.37]])

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[:, 0] + x[:, 1] + x[:, 2], x[:, 2] + x[:, 1] + x[:, 0]], 1).argmax(1)

    right = program(x)

    assert judge(1 - right, right, expected(program, x)).right


COMPARISONS = (torch.gt, torch.ge, torch.lt, torch.le, torch.eq, torch.ne)


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_comparison_of_equal_inputs_is_not_rounded(
    compare: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], dtype: torch.dtype
) -> None:
    x = torch.tensor([0.37, -1.91, 2.53], dtype=dtype)
    y = x.clone()
    right = compare(x, y)

    exact = reference(lambda: {"equal": compare(x.view(3), y)})["equal"]

    assert judge(right, right, exact).right
    assert judge(~right, right, exact).verdict == "compiled is off"


def test_a_number_that_a_score_mod_converts_is_no_tensor_that_is_rounded() -> None:
    x = torch.tensor([0.25, 0.5])

    def program(x: torch.Tensor) -> torch.Tensor:
        return x + torch.ops.aten._to_copy(0.1, dtype=torch.float32)

    right = program(x)

    assert judge(right, right, expected(program, x)).right


WHOLE = (torch.round, torch.floor, torch.ceil, torch.trunc)


@pytest.mark.parametrize("call", WHOLE, ids=lambda call: call.__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_another_whole_number_of_what_is_not_rounded_is_off(
    call: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype
) -> None:
    x = torch.tensor([-0.75, -0.25, 0.25, 0.625, 1.25, 3.75], dtype=dtype)

    def program(x: torch.Tensor) -> torch.Tensor:
        return call((x * 2 + 1.5).clamp(-8, 7)).to(torch.int8)

    right = program(x)
    of_it = expected(program, x)

    assert judge(right, right, of_it).right
    assert judge(right + 1, right, of_it).verdict == "compiled is off"


@pytest.mark.parametrize(
    "call, x, either",
    [(torch.round, 2.5, 5), (torch.floor, 2.0, 3), (torch.ceil, 2.0, 5), (torch.trunc, 2.0, 3)],
    ids=["round", "floor", "ceil", "trunc"],
)
def test_where_rounding_decides_the_whole_number_either_is_right(
    call: Callable[[torch.Tensor], torch.Tensor], x: float, either: int
) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return call(x / 7 * 7)

    given = torch.full((4,), x)
    right = program(given)
    of_it = reference(lambda: {"whole": program(given)}, samples=MORE_SAMPLES)["whole"]

    assert judge(right, right, of_it).right
    assert judge(either - right, right, of_it).right
