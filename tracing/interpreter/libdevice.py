"""The functions of NVIDIA's and AMD's device libraries, on CPU tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import torch


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


def _fma(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return (x.double() * y.double() + z.double()).to(z.dtype)


# CUDA libdevice user's guide, by names without prefix and width; torch's CPU functions agree with it.
_SAME_NAME_IN_TORCH = """
    abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc erfinv exp exp2 expm1 floor
    fmod hypot isinf isnan ldexp lgamma log log10 log1p log2 nextafter pow rsqrt signbit sin sinh sqrt tan
    tanh trunc
"""
_FUNCTIONS: Mapping[str, Callable[..., torch.Tensor]] = {
    **{name: getattr(torch, name) for name in _SAME_NAME_IN_TORCH.split()},
    "fabs": torch.abs,
    "powi": torch.pow,
    "pown": torch.pow,
    "fdivide": torch.div,
    "fma": _fma,
    "fmaf": _fma,
    "fdiv_rn": torch.div,
    "ddiv_rn": torch.div,
    "fsqrt_rn": torch.sqrt,
    "dsqrt_rn": torch.sqrt,
    "frsqrt_rn": torch.rsqrt,
    "fadd_rn": torch.add,
    "dadd_rn": torch.add,
    "fmul_rn": torch.mul,
    "dmul_rn": torch.mul,
    "fsub_rn": torch.sub,
    "nearbyint": torch.round,
    "rint": torch.round,
    "round": _half_away_from_zero,
    "llrint": torch.round,
    "llround": _half_away_from_zero,
    "ilogb": lambda x: torch.frexp(x).exponent - 1,
    "finite": torch.isfinite,
    "isfinite": torch.isfinite,
    "exp10": lambda x: torch.pow(10.0, x),
    "cbrt": lambda x: torch.copysign(x.abs().pow(1 / 3), x),
    "fdim": lambda x, y: torch.clamp(x - y, min=0),
    "tgamma": _gamma,
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
