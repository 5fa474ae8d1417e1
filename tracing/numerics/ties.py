"""Operators whose result for exact inputs is known: comparisons, conversions to integers, argmax and argmin.

Noise moves equal elements apart, so that either may be the larger one in one run, and halves to either
integer. What a program computes may round so as well, but neither what it receives, nor what it computes of
that without rounding. Of several largest elements argmax returns the first, as torch documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tracing.numerics.rounding import wide
from tracing.upstream.torch.pytrees import tree_leaves, tree_map

_COMPARING = ("aten::gt.", "aten::ge.", "aten::lt.", "aten::le.", "aten::eq.", "aten::ne.")
_TO_INTEGERS = ("aten::round", "aten::floor", "aten::ceil", "aten::trunc", "aten::sign")
_CONVERTING = ("aten::_to_copy", "prims::convert_element_type")
# Generated code computes these as ATen does, element by element.
_ALIKE = {
    "aten::add.Tensor", "aten::add.Scalar", "aten::sub.Tensor", "aten::sub.Scalar", "aten::rsub.Scalar",
    "aten::mul.Tensor", "aten::mul.Scalar", "aten::div.Tensor", "aten::div.Scalar", "aten::neg", "aten::abs",
    "aten::clamp", "aten::clamp.Tensor", "aten::clamp_min", "aten::clamp_max", "aten::clone", "aten::relu",
    "aten::maximum", "aten::minimum", "aten::where.self", "aten::cat", *_TO_INTEGERS, *_CONVERTING,
}  # fmt: skip
_SELECTING = ("aten::argmax", "aten::argmin", "aten::max.dim", "aten::min.dim")


def compared(name: str, args: Any) -> list[torch.Tensor]:
    """The operands of a comparison in which nothing is rounded: tensors of one dtype; else empty.

    A number is rounded to the dtype of the tensor in eager, and not always in generated code.
    """
    operands = [one for one in args if isinstance(one, torch.Tensor)]
    numbers = [one for one in args if not isinstance(one, torch.Tensor)]
    if not name.startswith(_COMPARING) or not operands:
        return []
    exact = all(representable(one, operands[0].dtype) for one in numbers)
    return operands if exact and len({one.dtype for one in operands}) == 1 else []


def compares_number(name: str, args: Any) -> bool:
    """True if an operator compares a tensor with a number that is no integer."""
    return name.startswith(_COMPARING) and any(isinstance(one, float) for one in args)


def with_rounded_numbers(own: Sequence[Any], given: Sequence[Any]) -> Sequence[Any]:
    """The arguments of a comparison with its numbers rounded, as in eager, to the dtype of the tensor.

    own, given -- the program's own arguments, and those in float64
    """
    dtype = next((one.dtype for one in own if isinstance(one, torch.Tensor)), None)
    if dtype is None or not dtype.is_floating_point:
        return given
    return [torch.tensor(one).to(dtype).item() if isinstance(one, float) else one for one in given]


def representable(number: Any, dtype: torch.dtype) -> bool:
    """True for a number that a dtype has; whole numbers are compared without rounding, whatever it is."""
    if not isinstance(number, (int, float)):
        return False
    return not dtype.is_floating_point or torch.tensor(number, dtype=torch.float64).to(dtype).item() == number


def rounded(name: str, args: Any) -> list[torch.Tensor]:
    """The operand of a conversion to whole numbers; else empty, also if a number is converted."""
    if not args or not isinstance(args[0], torch.Tensor):
        return []
    whole = name in _TO_INTEGERS or (name in _CONVERTING and args[0].is_floating_point())
    return [args[0]] if whole else []


def without_rounding(func: Any, name: str, own: Any, result: Any) -> bool:
    """True if an operator on exact tensors gave exact ones.

    own    -- its args and kwargs
    result -- what it gave
    """
    if name not in _ALIKE or not isinstance(result, torch.Tensor):
        return bool(compared(name, own[0]))
    leaves = tree_leaves(own)
    dtypes = {one.dtype for one in leaves if isinstance(one, torch.Tensor) and one.is_floating_point()}
    numbers = [one for one in leaves if isinstance(one, (int, float))]
    if torch.float64 in dtypes or not all(representable(one, dtype) for one in numbers for dtype in dtypes):
        return False  # nothing is wider; a number is rounded
    args, kwargs = tree_map(_in_float64, own)
    exact = func(*args, **kwargs)
    return bool(((exact == result) | (exact.isnan() & result.isnan())).all())


def _in_float64(leaf: Any) -> Any:
    if isinstance(leaf, torch.dtype):
        return wide(leaf)
    return leaf.to(wide(leaf.dtype)) if isinstance(leaf, torch.Tensor) else leaf


def selects(name: str) -> bool:
    """True if an operator returns the position of an element."""
    return name.startswith(_SELECTING)


def first(own: Any, result: Any) -> Any:
    """The result of such an operator, with the positions of the first of equal elements.

    own    -- its args and kwargs; the first argument is an input of the program, unchanged
    result -- as noise makes it
    """
    (operand, *further), options = own
    given = {**dict(zip(("dim", "keepdim"), further, strict=False)), **options}
    dim, keepdim = given.get("dim"), bool(given.get("keepdim", False))
    if not operand.dim() or not operand.numel():
        return result
    if isinstance(result, torch.Tensor):
        return _first(operand, result, dim, keepdim)
    values, indices = result
    return values, _first(operand, indices, dim, keepdim)


def _first(operand: torch.Tensor, indices: torch.Tensor, dim: int | None, keepdim: bool) -> torch.Tensor:
    if dim is None:
        return _first(operand.flatten(), indices.reshape(1), 0, True).reshape(indices.shape)
    chosen = operand.gather(dim, indices if keepdim else indices.unsqueeze(dim))
    alike = (operand == chosen) | (operand.isnan() & chosen.isnan())
    return alike.to(torch.uint8).argmax(dim, keepdim)
