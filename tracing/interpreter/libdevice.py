"""The functions of NVIDIA's and AMD's device libraries, on CPU tensors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from tracing.interpreter.intrinsics import INTRINSICS, flushed, with_flush


def function(symbol: str) -> Callable[..., torch.Tensor] | None:
    """The function that computes a symbol of a device library; None if there is none."""
    # __nv_expf, __nv_fast_expf, __nv_isnand, __ocml_exp_f32: a prefix, the name, the width.
    name = re.sub(r"^__(nv|ocml|ockl)_(fast_)?|_f(32|64)$", "", symbol)
    for candidate in (name, name[:-1] if name[-1] in "fd" else name):
        if candidate in _FUNCTIONS:
            return _FUNCTIONS[candidate]
    return None


def _half_away_from_zero(x: torch.Tensor) -> torch.Tensor:
    whole = torch.trunc(x)
    return torch.where((x - whole).abs() >= 0.5, whole + torch.sign(x), whole)


def _gamma(x: torch.Tensor) -> torch.Tensor:
    odd = torch.floor(x).remainder(2) != 0
    sign = torch.where((x < 0) & odd, -1, 1)
    result: torch.Tensor = torch.special.gammaln(x).exp() * sign
    return result


def _on_arrays(function: Callable[..., Any]) -> Callable[..., torch.Tensor]:
    def computed(*tensors: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(function(*(tensor.numpy() for tensor in tensors))))

    return computed


def _remainder(x: float, y: float) -> float:
    defined = math.isfinite(x) and y != 0 and not math.isnan(y)
    return math.remainder(x, y) if defined else math.nan


def _exponent(x: Any, zero: float, infinite: float, nan: float) -> Any:
    finite = np.frexp(x)[1] - 1.0
    return np.select([x == 0, np.isinf(x), np.isnan(x)], [zero, infinite, nan], finite)


def _ilogb(x: Any) -> Any:
    return _exponent(flushed(x), -(2.0**31), 2.0**31 - 1, -(2.0**31)).astype(np.int32)


def _logb(x: Any) -> Any:
    return _exponent(flushed(x), -math.inf, math.inf, math.nan).astype(x.dtype)


def _of_pi(function: Callable[..., Any], x: Any) -> Any:
    # exact to here: the angle is less than 2 pi, and its quarters give 0 and 1
    turns = np.fmod(np.float64(x), 2)
    angle = function(turns * np.pi)
    return np.where(turns * 2 == np.rint(turns * 2), np.rint(angle) + 0 * turns, angle).astype(x.dtype)


def _norm(*parts: Any) -> Any:
    return np.sqrt(sum(part.astype(np.longdouble) ** 2 for part in parts))


_NUMPY: Mapping[str, Callable[..., Any]] = {
    **INTRINSICS,
    "ldexp": np.ldexp,
    "scalbn": np.ldexp,
    "cbrt": np.cbrt,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "fdim": lambda x, y: np.where(x <= y, 0, x - y).astype(x.dtype),
    "remainder": lambda x, y: np.vectorize(_remainder)(x, y).astype(x.dtype),
    "ilogb": _ilogb,
    "logb": _logb,
    "sinpi": lambda x: _of_pi(np.sin, x),
    "cospi": lambda x: _of_pi(np.cos, x),
    "rhypot": lambda x, y: (1 / _norm(x, y)).astype(x.dtype),
    **{f"norm{count}d": lambda *parts: _norm(*parts).astype(parts[0].dtype) for count in (3, 4)},
    **{f"rnorm{count}d": lambda *parts: (1 / _norm(*parts)).astype(parts[0].dtype) for count in (3, 4)},
    **{name: with_flush(function) for name, function in (("floor", np.floor), ("ceil", np.ceil))},
    **{name: with_flush(np.abs) for name in ("abs", "fabs")},
}


# CUDA libdevice user's guide, by names without prefix and width; torch's CPU functions agree with it.
_SAME_NAME_IN_TORCH = """
    acos acosh asin asinh atan atan2 atanh copysign cos cosh erf erfc erfinv exp exp2 expm1
    fmod hypot isinf isnan lgamma log log10 log1p log2 nextafter pow rsqrt signbit sin sinh sqrt tan
    tanh trunc
"""
_FUNCTIONS: Mapping[str, Callable[..., torch.Tensor]] = {
    **{name: getattr(torch, name) for name in _SAME_NAME_IN_TORCH.split()},
    **{name: _on_arrays(one) for name, one in _NUMPY.items()},
    "powi": torch.pow,
    "pown": torch.pow,
    "fdivide": torch.div,
    "nearbyint": torch.round,
    "rint": torch.round,
    "round": _half_away_from_zero,
    "llrint": torch.round,
    "llround": _half_away_from_zero,
    "finite": torch.isfinite,
    "isfinite": torch.isfinite,
    "exp10": lambda x: torch.pow(10.0, x),
    "tgamma": _gamma,
    "erfcinv": lambda x: torch.special.ndtri(x / 2) * -math.sqrt(0.5),
    "erfcx": torch.special.erfcx,
    "normcdf": torch.special.ndtr,
    "normcdfinv": torch.special.ndtri,
    "saturate": lambda x: x.nan_to_num(0.0).clamp(0, 1),
    "j0": torch.special.bessel_j0,
    "j1": torch.special.bessel_j1,
    "y0": torch.special.bessel_y0,
    "y1": torch.special.bessel_y1,
    "i0": torch.special.i0,
    "i1": torch.special.i1,
    "cyl_bessel_i0": torch.special.i0,
    "cyl_bessel_i1": torch.special.i1,
}
