"""Conversions of numbers out of range to integers: torch does not define them, and processors disagree."""

from __future__ import annotations

from typing import Any

import torch

from tracing.numerics.rounding import Noise
from tracing.numerics.shadow_storages import is_inexact

_CONVERSIONS = ("aten::_to_copy", "prims::convert_element_type")


def with_any_integer(name: str, args: Any, result: Any, noise: Noise) -> Any:
    """The result of an operator; where it converts NaN or a number out of range, integers drawn at random.

    args -- of the operator, its tensors in float64
    """
    if not name.startswith(_CONVERSIONS) or not is_inexact(args[0]) or not isinstance(result, torch.Tensor):
        return result
    if result.dtype.is_floating_point or result.dtype.is_complex or result.dtype == torch.bool:
        return result
    limits, whole = torch.iinfo(result.dtype), args[0].real.trunc()
    defined = (whole >= float(limits.min)) & (whole < float(limits.max + 1))
    drawn = (noise.uniform(whole).abs() * (limits.max // 2)).to(result.dtype)
    return torch.where(defined, result, drawn)
