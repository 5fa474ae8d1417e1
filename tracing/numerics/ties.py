"""Operators whose result for equal inputs is known: comparisons, and argmax and argmin.

Noise moves equal elements apart, so that either may be the larger one in one run. What a program computes
may round apart as well, but not what it receives. Of several largest elements argmax returns the first, as
torch documents.
"""

from __future__ import annotations

from typing import Any

import torch

_COMPARING = ("aten::gt.", "aten::ge.", "aten::lt.", "aten::le.", "aten::eq.", "aten::ne.")
_SELECTING = ("aten::argmax", "aten::argmin", "aten::max.dim", "aten::min.dim")


def compared(name: str, args: Any) -> list[torch.Tensor]:
    """The operands of a comparison in which nothing is rounded: tensors of one dtype; else empty.

    A number is rounded to the dtype of the tensor in eager, and not in generated code.
    """
    operands = [one for one in args if isinstance(one, torch.Tensor)]
    numbers = [one for one in args if not isinstance(one, torch.Tensor)]
    if not name.startswith(_COMPARING) or not operands:
        return []
    exact = all(_exact(one, operands[0].dtype) for one in numbers)
    return operands if exact and len({one.dtype for one in operands}) == 1 else []


def _exact(number: Any, dtype: torch.dtype) -> bool:
    if not isinstance(number, (int, float)):
        return False
    return not dtype.is_floating_point or torch.tensor(number, dtype=torch.float64).to(dtype).item() == number


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
