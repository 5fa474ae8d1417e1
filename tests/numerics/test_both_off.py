"""Where neither compiled nor eager is near exact arithmetic, only results that are alike pass."""

from __future__ import annotations

import pytest
import torch

from tracing.numerics.agreement import outcome_of
from tracing.numerics.referee import Referee
from tracing.numerics.reference import Expected
from tracing.numerics.verdict import judge
from tracing.numerics.verdict_text import apart_text, judged_text
from tracing.program.structure import facts_of

X = torch.linspace(1, 2, 64)


def expected(exact: torch.Tensor) -> Expected:
    spread = torch.zeros(exact.shape, dtype=torch.float64)
    return Expected(exact.double() if exact.is_floating_point() else exact, spread)


@pytest.mark.parametrize("reference", [torch.nan, torch.inf])
@pytest.mark.parametrize(("factor", "verdict"), [(1.5, "not decided"), (1 + 1e-6, "both are off")])
def test_a_reference_that_is_not_finite_acquits_only_what_agrees_with_eager(
    reference: float, factor: float, verdict: str
) -> None:
    exact = torch.full_like(X, reference)

    assert judge(X * factor, X, expected(exact)).verdict == verdict


@pytest.mark.parametrize("reference", [torch.nan, torch.inf])
def test_a_number_that_only_eager_gives_is_not_decided(reference: float) -> None:
    compiled, exact = X.clone(), X.clone()
    compiled[3] = exact[3] = reference
    said = judge(compiled, X, expected(exact))

    assert said.verdict == "not decided"
    assert "in 1 of 64 elements, and exact arithmetic gives no number: [3] is " in apart_text(said)


def test_an_element_that_is_undecided_acquits_no_other_element() -> None:
    wrong, eager, exact = X * 1.5, X.clone(), X.clone()
    exact[3] = torch.nan
    assert judge(wrong, eager, expected(exact)).verdict == "compiled is off"
    assert judge(X, eager, expected(exact)).verdict == "both are off"

    exact[3], eager[3] = X[3], torch.inf  # eager overflows
    assert judge(wrong, eager, expected(exact)).verdict == "compiled is off"
    assert judge(X, eager, expected(exact)).verdict == "eager is off"


def test_results_that_are_off_and_half_as_large_as_each_other_are_undecided() -> None:
    assert judge(X * 2.5, X * 1.5, expected(X)).verdict == "not decided"


def test_results_that_are_inexact_alike_pass_with_their_difference() -> None:
    said = judge(X * 1.001, X * 1.0012, expected(X))

    assert said.verdict == "both are off"
    assert judged_text(said).endswith(
        " roundings from float64, and differ from each other by at most 0.011 %"
    )


def test_a_few_elements_that_differ_much_are_named() -> None:
    compiled, eager = (X.repeat(4) for _ in range(2))
    compiled[5], eager[7] = -compiled[5], -eager[7]

    said = judge(compiled, eager, expected(X.repeat(4)))

    assert said.verdict == "both are off"
    assert "differ from each other in 1 of 256 elements by more than 1/16: " in judged_text(said)
    assert "agrees with neither" not in judged_text(said)  # eager is right in this element
    assert "[5] is -1.07936513, in eager 1.07936513, in exact arithmetic" in judged_text(said)


def test_integers_that_differ_in_many_elements_are_undecided() -> None:
    exact = torch.arange(64)

    assert judge(exact + 2, exact + 1, expected(exact)).verdict == "not decided"
    assert judge(exact + 1, exact + 1, expected(exact)).verdict == "both are off"


def nan_in_float64(x: torch.Tensor) -> torch.Tensor:
    return x + (1 - (x * 0 + 1 + 1e-9)).sqrt()  # 1 + 1e-9 is 1 in float32


@pytest.mark.parametrize(("factor", "status"), [(1.5, "not decided"), (1 + 1e-6, "passed")])
def test_an_outcome_that_float64_does_not_decide_is_no_pass(factor: float, status: str) -> None:
    referee = Referee(lambda: {"output": nan_in_float64(X.clone())}, lambda: {}, lambda _: None)
    eager = nan_in_float64(X)

    outcome = outcome_of(facts_of(eager * factor, "output"), facts_of(eager, "output"), referee)

    assert outcome.status == status
    assert ("differ from each other in 64 of 64 elements" in outcome.detail) == (status == "not decided")
    assert "exact arithmetic" in outcome.detail


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "eager is off"), (0.4, "not decided")])
def test_a_number_where_eager_overflows_has_to_be_near_the_exact_one(factor: float, verdict: str) -> None:
    exact, spread = X.double() * 1e5, torch.full(X.shape, 1e150, dtype=torch.float64)  # samples overflow, too

    said = judge((exact * factor).float(), torch.full_like(X, torch.inf), Expected(exact, spread))

    assert said.verdict == verdict


@pytest.mark.parametrize(("fragile", "verdict"), [(True, "not decided"), (False, "compiled is off")])
def test_a_nan_is_not_decided_where_rounding_may_make_one(fragile: bool, verdict: str) -> None:
    compiled, spread = X.clone(), torch.zeros(X.shape, dtype=torch.float64)
    compiled[3] = torch.nan
    spread[3] = 1e153 if fragile else 0.1

    assert judge(compiled, X, Expected(X.double(), spread)).verdict == verdict
    assert judge(compiled * 1.5, X, Expected(X.double(), spread)).verdict == "compiled is off"


def test_a_result_that_is_off_on_average_only_is_decided() -> None:
    eager = torch.linspace(1, 2, 512).bfloat16()
    compiled = (eager.double() * (1 + 12 * torch.finfo(torch.bfloat16).eps)).bfloat16()
    said = judge(compiled, eager, expected(eager))

    assert (said.verdict, said.compiled.elements) == ("compiled is off", 0)


def test_rounding_makes_no_nan_of_most_elements() -> None:
    spread = torch.full(X.shape, 1e153, dtype=torch.float64)

    assert judge(X.where(X > 1.6, torch.nan), X, Expected(X.double(), spread)).verdict == "compiled is off"


def test_the_element_that_is_named_is_one_where_eager_is_off_too() -> None:
    exact = torch.arange(64)
    compiled, eager = exact.clone(), exact.clone()
    compiled[[0, 5]], eager[[5, 9]] = torch.tensor([7, 8]), torch.tensor([9, 7])
    said = judge(compiled, eager, Expected(exact, torch.zeros(64, dtype=torch.float64)))
    assert "exact arithmetic agrees with neither: [5] is 8, in eager 9, in exact" in apart_text(said)

    compiled[5] = eager[5] = 5
    said = judge(compiled, eager, Expected(exact, torch.zeros(64, dtype=torch.float64)))
    assert "agrees with neither everywhere: [0] is 7, in eager 0, in exact arithmetic 0" in apart_text(said)


def test_a_result_beyond_the_limit_does_not_pass_by_the_rounding_of_larger_elements() -> None:
    exact = torch.full((64,), 1000.0)
    spread = torch.ones(64, dtype=torch.float64)
    spread[3] = 0
    compiled, eager = exact.clone(), exact + 0.1
    compiled[3], eager[5] = 1007, 1042  # beyond the own rounding, and beyond that of the others
    said = judge(compiled, eager, Expected(exact.double(), spread))

    assert said.verdict == "not decided"
    assert "compiled and eager are " in apart_text(said)
