"""Products of float32 whose factors a GPU may round to TF32, which has 10 bits of mantissa.

Tensor cores cut the other bits off, or a kernel rounds the factors before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from tracing.numerics.rounding import Noise, narrowed
from tracing.upstream.torch.float32_precision import has_tf32, tf32_products
from tracing.upstream.torch.pytrees import tree_leaves, tree_map

_MANTISSA = 10  # bits


class _Product(NamedTuple):
    setting: str  # of `tf32_products`
    factors: tuple[int, ...]  # positions of its arguments


_LEFT, _RIGHT, _CONV = _Product("matmul", (0, 1)), _Product("matmul", (1, 2)), _Product("conv", (0, 1))
CONVOLUTION_BACKWARD = "aten::convolution_backward"
_PRODUCTS: Mapping[str, _Product] = {
    **{f"aten::{name}": _LEFT for name in ("mm", "bmm", "mv", "dot", "vdot")},
    **{
        f"aten::{name}": _RIGHT
        for name in ("addmm", "_addmm_activation", "addmv", "addbmm", "baddbmm")
    },
    **{
        f"aten::{name}": _CONV
        for name in (
            "convolution", "_convolution", "cudnn_convolution", "cudnn_convolution_transpose",
            "cudnn_convolution_relu", "cudnn_convolution_add_relu",
        )
    },
    CONVOLUTION_BACKWARD: _Product("conv", (0, 1, 2)),
    "aten::_cudnn_rnn": _Product("rnn", (0, 1, 3, 4)),
}  # fmt: skip
_ROUNDED = (torch.float32, torch.complex64)


def tf32_factors(name: str, args: Sequence[Any], allowed: Collection[str] | None) -> tuple[int, ...]:
    """The positions of those arguments of an operator that a GPU may round to TF32.

    name    -- "aten::mm.out"
    allowed -- products that may be computed in TF32, as `tf32_products`; None: those that this process
               allows, on a device that has TF32
    """
    product = _PRODUCTS.get(name.partition(".")[0].rstrip("_"))
    if product is None:
        return ()
    factors = [leaf for i in product.factors for leaf in tree_leaves(args[i]) if _is_rounded(leaf)]
    if not factors:
        return ()
    if allowed is None:
        allowed = tf32_products() if has_tf32(factors[0]) else ()
    return product.factors if product.setting in allowed else ()


def narrowed_factors(args: Sequence[Any], factors: Collection[int], noise: Noise) -> tuple[Any, ...]:
    """The wide arguments of an operator, some of which are rounded to TF32."""

    def narrow(leaf: Any) -> Any:
        return narrowed(leaf, _MANTISSA, noise) if isinstance(leaf, torch.Tensor) else leaf

    return tuple(tree_map(narrow, one) if i in factors else one for i, one in enumerate(args))


def _is_rounded(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dtype in _ROUNDED
