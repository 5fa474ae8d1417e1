"""Which of several equal inputs argmax and argmin return: the first one, as torch documents.

Noise moves equal elements apart, so that any of them may be the largest in one run. What a program computes
may round apart as well, but not what it receives.
"""

from __future__ import annotations

from typing import Any

import torch

_SELECTING = ("aten::argmax", "aten::argmin", "aten::max.dim", "aten::min.dim")


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
