"""Each criterion of a comparison fails by itself, and no criterion hides another."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tracing.numerics.tensor_diff import ComparisonConfig, compare_tensors

NAN, INF = float("nan"), float("inf")


def failed(actual: torch.Tensor, expected: torch.Tensor, **config: object) -> list[str]:
    diff = compare_tensors(actual, expected, ComparisonConfig(**config))  # type: ignore[arg-type]
    return [one.name for one in diff.failed()]


def test_equal_tensors_have_no_error_and_no_worst_element() -> None:
    diff = compare_tensors(torch.ones(3, 4), torch.ones(3, 4))

    assert diff.passed
    assert (diff.max_absolute_error, diff.max_ulp, diff.cosine, diff.worst) == (0.0, 0.0, 1.0, None)


def test_every_measure_of_a_tensor_is_that_of_its_definition() -> None:
    diff = compare_tensors(torch.tensor([1.5, 2.0, 0.25, 4.0]), torch.tensor([1.0, 2.0, 0.0, -4.0]))

    assert (diff.max_absolute_error, diff.mean_absolute_error) == (8.0, 8.75 / 4)
    assert (diff.max_relative_error, diff.mean_relative_error) == (2.0, pytest.approx(2.5 / 3))
    assert diff.rmse == pytest.approx(math.sqrt((0.25 + 0.0625 + 64) / 4))
    assert diff.cosine == pytest.approx(-10.5 / math.sqrt(22.3125 * 21))
    assert diff.mismatch_percentage == 75.0


@pytest.mark.parametrize("actual", [INF, -INF, NAN])
def test_tensors_of_which_one_is_not_finite_have_no_cosine(actual: float) -> None:
    diff = compare_tensors(torch.tensor([actual, 1.0]), torch.tensor([1.0, 1.0]))

    assert math.isnan(diff.cosine) and not diff.passed


def test_one_wrong_element_of_a_million_fails_although_the_rmse_is_small() -> None:
    expected = torch.ones(1000, 1000)
    actual = expected.clone()
    actual[3, 5] = 1.001

    assert failed(actual, expected, rtol=1e-5, atol=0.0) == ["elements"]


def test_a_drift_within_the_tolerance_of_each_element_fails_by_its_rmse() -> None:
    expected = torch.tensor([100.0] + [0.0] * 9999, dtype=torch.float64)
    actual = expected + torch.tensor([9.9e-3] * 10000, dtype=torch.float64)

    assert failed(actual, expected, rtol=0.0, atol=1e-2) == []
    assert failed(actual, expected, rtol=0.0, atol=9e-3) == ["elements", "rmse"]


def test_the_distance_in_ulp_is_judged_where_a_limit_is_given() -> None:
    expected = torch.ones(4, dtype=torch.float16)
    actual = expected.nextafter(torch.full_like(expected, 2.0))

    assert compare_tensors(actual, expected).max_ulp == 1.0
    assert failed(actual, expected, ulp=0.0) == ["ulp"]
    assert failed(actual, expected, ulp=1.0) == []


@pytest.mark.parametrize(("atol", "rtol", "passes"), [(0, 0.02, True), (0, 0.005, False), (2, 0, True)])
def test_each_tolerance_decides_where_the_other_is_0(atol: float, rtol: float, passes: bool) -> None:
    diff = compare_tensors(
        torch.tensor([101.0]), torch.tensor([100.0]), ComparisonConfig(atol=atol, rtol=rtol)
    )

    assert diff.passed is passes


def test_float64_is_not_rounded_to_float32() -> None:
    expected = torch.tensor([1.0], dtype=torch.float64)

    diff = compare_tensors(expected + 2**-50, expected, ComparisonConfig(atol=0.0, rtol=0.0))

    assert not diff.passed
    assert diff.max_absolute_error == 2**-50
    assert diff.max_ulp == 4.0


@pytest.mark.parametrize(
    ("actual", "expected", "names"),
    [
        ([NAN, 1.0], [NAN, 1.0], []),
        ([INF, -INF], [INF, -INF], []),
        ([INF, 1.0], [-INF, 1.0], ["elements", "rmse"]),
        ([NAN, 1.0], [0.0, 1.0], ["elements", "rmse"]),
        ([1.0, 1.0], [INF, 1.0], ["elements", "rmse"]),
    ],
)
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64]
)
def test_infinities_and_nans_are_equal_only_to_themselves(
    actual: list[float], expected: list[float], names: list[str], dtype: torch.dtype
) -> None:
    assert failed(torch.tensor(actual, dtype=dtype), torch.tensor(expected, dtype=dtype)) == names


def test_equal_nans_differ_where_the_configuration_says_so() -> None:
    assert failed(torch.tensor([NAN]), torch.tensor([NAN]), equal_nan=False) == ["elements", "rmse"]


@pytest.mark.parametrize(
    ("actual", "expected", "problem"),
    [
        (torch.ones(2), torch.ones(3), "shape differs: (2,) instead of (3,)"),
        (torch.ones(1, 3), torch.ones(3), "shape differs: (1, 3) instead of (3,)"),
        (torch.ones(2), torch.ones(2).int(), "dtype differs: torch.float32 instead of torch.int32"),
        (torch.ones(0), torch.ones(0, 2), "shape differs: (0,) instead of (0, 2)"),
    ],
)
def test_another_shape_or_dtype_is_a_difference(
    actual: torch.Tensor, expected: torch.Tensor, problem: str
) -> None:
    diff = compare_tensors(actual, expected)

    assert not diff.passed
    assert diff.problem == problem


def test_empty_tensors_of_one_shape_are_equal() -> None:
    assert compare_tensors(torch.ones(0, 3), torch.ones(0, 3)).passed


def test_integers_that_are_one_number_in_float64_differ() -> None:
    expected = torch.tensor([2**62, 7])

    diff = compare_tensors(expected + 1, expected)

    assert diff.mismatched == 2
    assert not diff.passed


def test_the_worst_element_is_the_one_farthest_beyond_its_tolerance() -> None:
    expected = torch.full((8, 8), 1e4)
    expected[6, 1] = 1.0
    actual = expected * (1 + 1e-6)  # a larger absolute error, which its tolerance allows
    actual[6, 1] = 1.004

    worst = compare_tensors(actual, expected).worst

    assert worst is not None
    assert (worst.index, worst.start) == ((6, 1), (4, 0))
    assert [len(worst.around_actual), len(worst.around_actual[0])] == [4, 4]
    assert worst.around_expected[2][1] == worst.expected == 1.0


def test_the_heat_map_shows_where_errors_are() -> None:
    expected = torch.zeros(48, 640)
    actual = expected.clone()
    actual[47, 639] = 3.0

    heat = compare_tensors(actual, expected).heat

    assert [len(heat), len(heat[0])] == [24, 64]
    assert heat[-1][-1] == 3.0
    assert sum(map(sum, heat)) == 3.0


def test_a_negative_tolerance_is_refused() -> None:
    with pytest.raises(ValueError, match="rtol is -1"):
        ComparisonConfig(rtol=-1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("expected", [0.0, 1.0])
@pytest.mark.parametrize("share", [0.4, 4.0])
def test_tolerances_by_dtype_are_those_of_assert_close(
    dtype: torch.dtype, expected: float, share: float
) -> None:
    atol, rtol = ComparisonConfig().tolerances(dtype)
    reference = torch.tensor([expected], dtype=dtype)
    actual = reference + torch.tensor(share * (atol + rtol * expected), dtype=dtype)

    passed = compare_tensors(actual, reference).passed

    if share > 1:
        assert not passed
        with pytest.raises(AssertionError):
            torch.testing.assert_close(actual, reference)
    else:
        assert passed
        torch.testing.assert_close(actual, reference)


DTYPES = {torch.float16: np.float16, torch.float32: np.float32, torch.float64: np.float64}


@given(
    data=st.data(),
    dtype=st.sampled_from(list(DTYPES)),
    config=st.sampled_from([None, (1e-3, 1e-2), (0.0, 0.0)]),
)
def test_the_verdict_on_elements_is_that_of_assert_close(
    data: st.DataObject, dtype: torch.dtype, config: tuple[float, float] | None
) -> None:
    shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    shape = data.draw(shapes)
    expected = torch.from_numpy(data.draw(arrays.arrays(DTYPES[dtype], shape)))
    actual = expected.clone()
    if actual.numel():
        other = torch.from_numpy(data.draw(arrays.arrays(DTYPES[dtype], shape)))
        actual = torch.where(torch.from_numpy(data.draw(arrays.arrays(np.bool_, shape))), actual, other)
    chosen = ComparisonConfig(*config) if config else ComparisonConfig()
    atol, rtol = chosen.tolerances(dtype)

    diff = compare_tensors(actual, expected, chosen)

    try:  # in float64: in float16 assert_close rounds its tolerances
        torch.testing.assert_close(actual.double(), expected.double(), atol=atol, rtol=rtol, equal_nan=True)
    except AssertionError:
        assert "elements" in [one.name for one in diff.failed()]
    else:
        assert "elements" not in [one.name for one in diff.failed()]
    assert not math.isnan(diff.rmse)
