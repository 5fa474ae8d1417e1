"""Measure how far two tensors differ, with a separate verdict for each criterion.

- elements: |actual - expected| <= atol + rtol * |expected|, for every element
- ULP: no element is more than `ulp` representable numbers away
- RMSE: the root mean square error is at most atol + rtol * the root mean square of `expected`

A tensor passes if every criterion passes. No criterion hides another: one wrong element fails the first,
however small the mean error is, and a drift of all elements fails the last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from tracing.numerics.heat_map import heat_map
from tracing.numerics.ulp import ulp_distance

# (atol, rtol) of torch.testing.assert_close; complex dtypes take those of their parts
_TOLERANCES: Mapping[torch.dtype, tuple[float, float]] = {
    torch.float16: (1e-5, 1e-3),
    torch.bfloat16: (1e-5, 1.6e-2),
    torch.float32: (1e-5, 1.3e-6),
    torch.float64: (1e-7, 1e-7),
}
# elements of the neighbourhood, before and after the worst one, in each of the last two dimensions
_AROUND = 2


@dataclass(frozen=True, slots=True)
class ComparisonConfig:
    """The criteria of a comparison.

    atol, rtol    -- absolute, in units of the tensor, and relative to |expected|; None: by dtype
    by_dtype      -- (atol, rtol) of a dtype, before those of torch.testing.assert_close
    ulp           -- the greatest distance in units in the last place; None: measured, not judged
    equal_nan     -- two NaNs at one index are equal
    flatten_lists -- containers are compared leaf by leaf, whatever their types
    """

    atol: float | None = None
    rtol: float | None = None
    by_dtype: Mapping[torch.dtype, tuple[float, float]] = field(default_factory=dict)
    ulp: float | None = None
    equal_nan: bool = True
    flatten_lists: bool = True

    def __post_init__(self) -> None:
        for name in ("atol", "rtol", "ulp"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(f"{name} is {value}: it must be 0 or greater")

    def tolerances(self, dtype: torch.dtype) -> tuple[float, float]:
        """(atol, rtol) for a dtype; integers and bools must be equal unless the caller gives tolerances."""
        part = dtype.to_real() if dtype.is_complex else dtype
        atol, rtol = self.by_dtype.get(dtype) or _TOLERANCES.get(part) or _of_precision(part)
        return (atol if self.atol is None else self.atol), (rtol if self.rtol is None else self.rtol)


def _of_precision(dtype: torch.dtype) -> tuple[float, float]:
    # float8 and others, for which assert_close demands equality: the distance to the next number
    return (0.0, torch.finfo(dtype).eps) if dtype.is_floating_point else (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion: the measured value, and the allowed one."""

    name: str  # "elements", "ulp" or "rmse"
    measured: float
    allowed: float

    @property
    def passed(self) -> bool:
        """True if the measured value is allowed."""
        return self.measured <= self.allowed


@dataclass(frozen=True, slots=True)
class WorstElement:
    """The element with the largest error, and those around it."""

    index: tuple[int, ...]
    actual: complex | float
    expected: complex | float
    start: tuple[int, ...]  # index of the first element of the neighbourhood
    around_actual: list[list[complex | float]]  # [rows, columns] over the last two dimensions
    around_expected: list[list[complex | float]]  # likewise


@dataclass(frozen=True, slots=True)
class TensorDiff:
    """How far two tensors differ, in float64; errors are infinite where only one side is finite."""

    problem: str  # shapes or dtypes that differ; "": none
    criteria: tuple[Criterion, ...] = ()
    elements: int = 0
    mismatched: int = 0  # elements beyond the tolerance
    max_absolute_error: float = 0.0
    mean_absolute_error: float = 0.0
    max_relative_error: float = 0.0  # of elements whose expected value is finite and not 0
    mean_relative_error: float = 0.0  # of the same elements
    rmse: float = 0.0
    max_ulp: float | None = None  # None: the dtype has no floating point
    cosine: float = 1.0  # similarity of the two tensors as vectors; NaN where one side is not finite
    worst: WorstElement | None = None  # None: all elements are equal
    heat: list[list[float]] = field(default_factory=list)  # the largest absolute error of each cell

    @property
    def passed(self) -> bool:
        """True if shape and dtype are equal and every criterion passes."""
        return not self.problem and all(one.passed for one in self.criteria)

    @property
    def mismatch_percentage(self) -> float:
        """Elements beyond the tolerance, in percent of all elements."""
        return 100.0 * self.mismatched / self.elements if self.elements else 0.0

    def failed(self) -> tuple[Criterion, ...]:
        """The criteria that do not pass."""
        return tuple(one for one in self.criteria if not one.passed)


def compare_tensors(
    actual: torch.Tensor, expected: torch.Tensor, config: ComparisonConfig | None = None
) -> TensorDiff:
    """Compare one tensor with its reference, element by element.

    actual   -- [*] any strided dtype and device
    expected -- [*] of the same shape and dtype
    config   -- None: the tolerances of torch.testing.assert_close, and equal NaNs are equal

    Two infinities of one sign are equal. A shape or dtype that differs is a difference: nothing is broadcast
    or converted. Integers are compared exactly unless the configuration has tolerances for them.
    Memory: six float64 copies of one tensor, on its device.
    """
    config = config or ComparisonConfig()
    problem = _problem(actual, expected)
    if problem or not actual.numel():
        return TensorDiff(problem, () if problem else (Criterion("elements", 0.0, 0.0),))
    actual, expected = actual.detach(), expected.detach().to(actual.device)
    a, b = _wide(actual), _wide(expected)
    equal = _equal(actual, expected, a, b, config)
    error = _errors(a, b, equal, floating=_floating(actual))
    atol, rtol = config.tolerances(expected.dtype)
    size = b.abs().masked_fill(~b.isfinite(), 0.0)
    beyond = ~equal & ~(error <= atol + rtol * size)
    ulps = float(ulp_distance(actual, expected).masked_fill(equal, 0.0).max()) if _floating(actual) else None
    criteria = [
        Criterion("elements", float(beyond.sum()), 0.0),
        Criterion("rmse", _rms(error), atol + rtol * _rms(size)),
    ]
    if config.ulp is not None and ulps is not None:
        criteria.append(Criterion("ulp", ulps, config.ulp))
    relative = (error / size)[size != 0]
    return TensorDiff(
        "",
        tuple(criteria),
        elements=actual.numel(),
        mismatched=int(beyond.sum()),
        max_absolute_error=float(error.max()),
        mean_absolute_error=float(error.mean()),
        max_relative_error=float(relative.max()) if relative.numel() else 0.0,
        mean_relative_error=float(relative.mean()) if relative.numel() else 0.0,
        rmse=_rms(error),
        max_ulp=ulps,
        cosine=_cosine(a.masked_fill(equal & ~b.isfinite(), 0.0), b.masked_fill(equal & ~b.isfinite(), 0.0)),
        worst=None
        if bool(equal.all())
        else _worst(a, b, (error - rtol * size).masked_fill(equal, -math.inf)),
        heat=heat_map(error),
    )


def _problem(actual: torch.Tensor, expected: torch.Tensor) -> str:
    for name in ("dtype", "shape", "layout"):
        given, needed = getattr(actual, name), getattr(expected, name)
        if given != needed:
            texts = (str(tuple(one)) if name == "shape" else str(one) for one in (given, needed))
            return f"{name} differs: {' instead of '.join(texts)}"
    if actual.layout != torch.strided or actual.is_quantized:
        return f"tensors of layout {actual.layout} and dtype {actual.dtype} are not compared"
    return ""


def _floating(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _equal(
    actual: torch.Tensor, expected: torch.Tensor, a: torch.Tensor, b: torch.Tensor, config: ComparisonConfig
) -> torch.Tensor:
    if not _floating(actual):
        return actual == expected  # float64 does not hold every int64
    return (a == b) | (a.isnan() & b.isnan()) if config.equal_nan else a == b


def _errors(a: torch.Tensor, b: torch.Tensor, equal: torch.Tensor, *, floating: bool) -> torch.Tensor:
    error = (a - b).abs().masked_fill(equal, 0.0)
    error = error.masked_fill(error.isnan(), torch.inf)
    # two int64 may be one float64
    return error if floating else torch.where(equal, error, error.clamp(min=1.0))


def _rms(values: torch.Tensor) -> float:
    largest = float(values.max())
    if not largest or math.isinf(largest):
        return largest
    return largest * float((values / largest).square().mean().sqrt())


def _cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    norms = [float(torch.linalg.vector_norm(one)) for one in (a, b)]
    if 0.0 in norms:
        return 1.0 if norms[0] == norms[1] else 0.0
    similarity = float(torch.sum((a / norms[0]) * (b / norms[1]).conj()).real)
    return similarity if math.isnan(similarity) else min(1.0, similarity)  # min would take 1 before a NaN


def _worst(a: torch.Tensor, b: torch.Tensor, excess: torch.Tensor) -> WorstElement:
    index = tuple(int(one) for one in torch.unravel_index(excess.argmax(), excess.shape))
    last = len(index) - 2
    start = tuple(max(at - _AROUND, 0) if i >= last else at for i, at in enumerate(index))
    window = tuple(
        slice(begin, at + _AROUND + 1) if i >= last else slice(at, at + 1)
        for i, (begin, at) in enumerate(zip(start, index, strict=True))
    )
    around = [_rows(one[window]) for one in (a, b)]
    return WorstElement(index, a[index].item(), b[index].item(), start, *around)


def _rows(window: torch.Tensor) -> list[list[complex | float]]:
    columns = window.shape[-1] if window.dim() else 1
    return [list(one) for one in window.reshape(-1, columns).tolist()]
