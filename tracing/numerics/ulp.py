"""The distance of two floating-point tensors in units in the last place, in their own dtype."""

from __future__ import annotations

import torch

from tracing.numerics.rounding import real

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def ulp_distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """[*] float64: how many representable numbers lie between each pair of elements, plus one; 0 if equal.

    a, b -- [*] of one floating or complex dtype; of a complex element the farther part counts

    0.0 and -0.0 are equal, and so are two NaNs. A NaN and a number are infinitely far apart. The last finite
    number and infinity are neighbours, as in IEEE 754. Distances above 2**53 are rounded.

    Raises TypeError if the dtypes differ or have no floating point.
    """
    if a.dtype != b.dtype or not (a.is_floating_point() or a.is_complex()):
        raise TypeError(f"units in the last place need one floating dtype: found {a.dtype} and {b.dtype}")
    if a.is_complex():
        parts = ulp_distance(torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj()))
        return parts.amax(-1)
    (sign_a, steps_a), (sign_b, steps_b) = _steps(a), _steps(b)
    # for equal signs the difference is exact; the distance across zero is a sum that may exceed int64
    within = (steps_a - steps_b).abs().double()
    distance = torch.where(sign_a == sign_b, within, steps_a.double() + steps_b.double())
    nan_a, nan_b = a.isnan(), b.isnan()
    return distance.masked_fill(nan_a ^ nan_b, torch.inf).masked_fill(nan_a & nan_b, 0.0)


def _steps(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    # the sign of each element, and its distance from zero in representable numbers, encoded in its other bits
    size = real(values.dtype).itemsize
    bits = values.contiguous().view(_INTEGERS[size]).long()
    return bits < 0, bits & ((1 << (8 * size - 1)) - 1)
