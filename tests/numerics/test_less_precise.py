"""A result within the limit that is much farther from exact than eager's is called less precise."""

from __future__ import annotations

import torch

from tracing.numerics.agreement import outcome_of
from tracing.numerics.referee import Referee
from tracing.numerics.reference import Expected
from tracing.numerics.verdict import judge
from tracing.program.structure import facts_of

X = torch.linspace(1, 2, 64).half()
EXACT = Expected(X.double(), torch.zeros(64, dtype=torch.float64))
UNIT = torch.finfo(torch.float16).eps
SOME = torch.tensor([7, 1, 1, 1], dtype=torch.float16).repeat(16)  # roundings: 2.5 on average


def accumulated(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b with an accumulator of 16 bits."""
    sums = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(0, a.shape[1], 16):
        sums += a[:, k : k + 16] @ b[k : k + 16]
    return sums


def test_an_accumulator_of_16_bits_passes_and_is_called_less_precise() -> None:
    random = torch.Generator().manual_seed(0)
    a, b = torch.rand(16, 2048, generator=random).half(), torch.rand(2048, 16, generator=random).half()
    referee = Referee(lambda: {"output": a.clone() @ b}, lambda: {}, lambda _: None)
    eager = facts_of(a @ b, "output")

    narrow = outcome_of(facts_of(accumulated(a, b), "output"), eager, referee)
    wide = outcome_of(facts_of(torch.nextafter(a @ b, a @ b + 1), "output"), eager, referee)

    assert (narrow.status, wide.status) == ("passed", "passed")
    (sentence,) = narrow.less_precise
    assert sentence.startswith("output is ") and " roundings from exact, eager's 0." in sentence
    assert f"; less precise than eager: {sentence}" in narrow.detail
    assert not wide.less_precise and "less precise" not in wide.detail


def test_one_element_that_is_far_away_makes_no_result_less_precise() -> None:
    eager = X + UNIT
    single = eager.clone()
    single[5] += 16 * UNIT

    assert judge(X + SOME * UNIT, eager, EXACT).less_precise
    assert not judge(single, eager, EXACT).less_precise


def test_where_values_of_eager_stand_for_exact_ones_nothing_is_less_precise() -> None:
    missing = Expected(EXACT.exact, EXACT.spread, missing=("aten::lstm",))

    assert not judge(X + SOME * UNIT, X + UNIT, missing).less_precise


def test_a_result_about_as_far_away_as_eagers_is_not_less_precise() -> None:
    assert not judge(X + SOME * UNIT, X + 3 * UNIT, EXACT).less_precise
