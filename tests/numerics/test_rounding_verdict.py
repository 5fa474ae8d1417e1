"""Right programs that round differently are accused of nothing; planted faults are detected."""

from __future__ import annotations

import functools

import pytest
import torch
import torch.nn.functional as functional
from graphs import faulty, graph, inputs, run
from torch._inductor.decomposition import select_decomp_table
from torch.fx.experimental.proxy_tensor import make_fx

from tracing.numerics.reference import Expected, reference
from tracing.numerics.verdict import Judged, judge
from tracing.numerics.verdict_text import undecided_text

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
SEEDS = range(40)


@functools.cache
def judged(seed: int) -> tuple[list[Judged], Judged | None]:
    """Every value of a graph with decomposed operators, and its last value with a planted fault.

    None: the fault changes no bit.
    """
    x, y = inputs(seed, DTYPES[seed % 3])
    steps = graph(seed)
    eager = run(steps, x.clone(), y.clone())
    parts = make_fx(lambda a, b: run(steps, a, b), decomposition_table=select_decomp_table())(x, y)
    exact = reference(lambda: {str(n): one for n, one in enumerate(run(steps, x.clone(), y.clone()))})
    right = [
        judge(compiled, eager[n], exact[str(n)]) for n, compiled in enumerate(parts(x.clone(), y.clone()))
    ]
    wrong = run(faulty(steps, seed), x.clone(), y.clone())[-1]
    if wrong.shape != eager[-1].shape or torch.equal(wrong, eager[-1]):
        return right, None
    return right, judge(wrong, eager[-1], exact[str(len(steps) - 1)])


def explained(fault: Judged) -> bool:
    """True if rounding moves results about as far as the fault does."""
    return fault.compiled.farthest <= fault.compiled.limit and fault.verdict == "within rounding"


@pytest.mark.parametrize("seed", SEEDS)
def test_decomposed_operators_are_within_rounding_and_a_fault_is_not(seed: int) -> None:
    right, fault = judged(seed)

    assert {one.verdict for one in right} <= {"within rounding", "eager is off"}
    assert fault is None or fault.verdict == "compiled is off" or explained(fault)


def test_most_faults_are_larger_than_rounding() -> None:
    faults = [fault for seed in SEEDS if (fault := judged(seed)[1]) is not None]

    assert sum(fault.verdict == "compiled is off" for fault in faults) > 0.9 * len(faults)


def expected(exact: torch.Tensor, spread: float = 0.0, missing: tuple[str, ...] = ()) -> Expected:
    return Expected(exact.double(), torch.full(exact.shape, spread, dtype=torch.float64), missing)


X = torch.linspace(1, 2, 64)


def test_eager_is_accused_if_only_compiled_is_exact() -> None:
    assert judge(X, X * 1.1, expected(X)).verdict == "eager is off"


def test_the_element_that_is_farthest_is_named_with_its_exact_value() -> None:
    wrong = X.clone().reshape(8, 8)
    wrong[2, 5] = 7

    judged = judge(wrong, X.reshape(8, 8), expected(X.reshape(8, 8)))

    assert judged.verdict == "compiled is off"
    assert (judged.compiled.index, judged.compiled.value, judged.compiled.elements) == ((2, 5), 7.0, 1)
    assert judged.exact == pytest.approx(float(X[21]))


def test_eager_and_compiled_equally_far_from_the_reference_are_both_off() -> None:
    assert judge(X * 1.001, X * 1.0012, expected(X)).verdict == "both are off"


def test_without_a_reference_neither_result_is_accused() -> None:
    assert judge(X * 2, X, expected(X, missing=("aten::custom",))).verdict == "no reference"


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_nan_or_infinity_is_wrong_unless_the_reference_has_it_too(value: float) -> None:
    wrong, exact = X.clone(), X.clone()
    wrong[3] = value
    assert judge(wrong, X, expected(X)).verdict == "compiled is off"

    exact[3] = value
    assert judge(wrong, wrong, expected(exact)).verdict == "within rounding"


def test_a_value_that_overflows_its_dtype_is_exact() -> None:
    large = torch.tensor([1e5, 2.0])

    assert judge(large.half(), large.half(), expected(large)).verdict == "within rounding"


FLOAT8 = (
    torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu
)  # fmt: skip


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_float8_is_judged(dtype: torch.dtype) -> None:
    exact = torch.tensor([0.25, 0.5, 1.0, 2.0])
    right = exact.to(dtype)
    wrong = (exact * 64).to(dtype)

    assert judge(right, right, expected(exact)).verdict == "within rounding"
    assert judge(wrong, right, expected(exact)).verdict == "compiled is off"


def test_a_float8_with_another_sign_is_off_and_its_neighbour_is_not() -> None:
    exact = torch.linspace(-3, 3, 64)
    right = exact.to(torch.float8_e4m3fn)
    flipped, next_one = right.clone(), right.clone()
    flipped[50] = -exact[50]
    next_one.view(torch.uint8)[50] += 1

    verdicts = [judge(one, right, expected(exact)).verdict for one in (flipped, next_one)]
    assert verdicts == ["compiled is off", "within rounding"]


@pytest.mark.parametrize(
    ("dtype", "verdict"),
    [
        (torch.float32, "within rounding"),
        (torch.bfloat16, "within rounding"),
        (torch.float16, "compiled is off"),
    ],
)
def test_only_numbers_below_the_least_normal_float32_may_be_flushed_to_0(
    dtype: torch.dtype, verdict: str
) -> None:
    small = torch.full((64,), torch.finfo(dtype).tiny / 4, dtype=dtype)

    assert judge(torch.zeros_like(small), small, expected(small)).verdict == verdict


def test_integers_are_exact_unless_rounding_decides_them() -> None:
    eager, compiled = torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4])
    certain = Expected(eager, torch.zeros(3, dtype=torch.float64))
    undecided = Expected(eager, torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64))

    assert judge(compiled, eager, certain).verdict == "compiled is off"
    assert judge(compiled, eager, undecided).verdict == "within rounding"


FILLS = (-1e9, -1e4, torch.finfo(torch.float32).min, -torch.inf)
KEPT = torch.ones(64, 64, dtype=torch.bool).tril()


def masked(x: torch.Tensor, how: str, fill: float) -> torch.Tensor:
    """x, in which elements that do not come from it are much larger."""
    fill = max(fill, torch.finfo(x.dtype).min) if fill != -torch.inf else fill
    if how == "one":
        return torch.cat([torch.full((1, 64), fill, dtype=x.dtype), x[1:]])
    if how == "added":
        return x + torch.zeros_like(x).masked_fill(~KEPT, fill)
    return x.masked_fill(~KEPT if how == "half" else torch.arange(64) > 3, fill)


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("how", ["half", "most", "added", "one"])
def test_large_elements_acquit_no_fault_of_the_others(how: str, fill: float) -> None:
    for dtype in DTYPES:
        x = torch.randn(64, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
        eager = masked(functional.softplus(x * 3), how, fill)
        exact = reference(lambda x=x: {"y": masked(functional.softplus(x.clone() * 3), how, fill)})["y"]
        right = masked(functional.softplus(x.float() * 3).to(dtype), how, fill)
        wrong = masked(functional.softplus(x * 3) * 1.5, how, fill)

        assert judge(right, eager, exact).verdict == "within rounding", dtype
        assert judge(wrong, eager, exact).verdict == "compiled is off", dtype


def test_small_elements_among_large_ones_that_differ_are_undecided() -> None:
    # rounding explains the large elements, but of the small ones no more than one rounding each
    exact = torch.cat([torch.full((900,), 1e9), X])
    compiled = torch.cat([torch.full((900,), 1e9 + 64), X * 1.5])

    said = judge(compiled, exact, expected(exact))

    assert (said.verdict, said.undecided) == ("within rounding", len(X))
    assert undecided_text(said) == (
        "64 elements are compared with the rounding of larger elements only, and beyond the own one"
    )
