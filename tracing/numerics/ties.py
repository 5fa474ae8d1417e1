"""Which of several equal elements argmax and argmin return: the first one, as torch documents.

Noise moves equal elements apart, so that any of them may be the largest in one run. Those that are equal in
exact arithmetic, and in the program itself, stay equal in any right program.
"""

from __future__ import annotations

from typing import Any

import torch

_SELECTING = ("aten::argmax", "aten::argmin", "aten::max.dim", "aten::min.dim")


class Ties:
    """The operators of one run that select elements, in the order of their execution."""

    def __init__(self, exact: Ties | None = None) -> None:
        """exact -- those of the run without noise; None: this is that run"""
        self._exact = exact
        self._selected: list[torch.Tensor] = []  # from which each one selects
        self._made = 0

    def first(self, name: str, own: Any, given: Any, result: Any) -> Any:
        """The result of an operator, whose indices are those of the first of equal elements.

        own   -- the args of the program itself
        given -- args and kwargs of the operator, its tensors in float64
        """
        if not name.startswith(_SELECTING):
            return result
        self._made += 1
        operand = given[0][0]
        if self._exact is None:
            self._selected.append(operand.clone())
            return result
        exact = self._exact._selected[self._made - 1 : self._made]
        if not exact or exact[0].shape != operand.shape or not operand.numel():
            return result  # the program took another branch
        if isinstance(result, torch.Tensor):
            return _first(exact[0], own[0], result, *_dimension(*given))
        values, indices = result
        return values, _first(exact[0], own[0], indices, *_dimension(*given))


def _dimension(args: Any, kwargs: Any) -> tuple[int | None, bool]:
    options = {**dict(zip(("dim", "keepdim"), args[1:], strict=False)), **kwargs}
    return options.get("dim"), bool(options.get("keepdim", False))


def _first(
    exact: torch.Tensor, own: torch.Tensor, indices: torch.Tensor, dim: int | None, keepdim: bool
) -> torch.Tensor:
    if not exact.dim():
        return indices
    if dim is None:
        shape = indices.shape
        return _first(exact.flatten(), own.flatten(), indices.reshape(1), 0, True).reshape(shape)
    chosen = indices if keepdim else indices.unsqueeze(dim)
    alike = _same(exact, exact.gather(dim, chosen)) & _same(own, own.gather(dim, chosen))
    return alike.to(torch.uint8).argmax(dim, keepdim)


def _same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (one == other) | (one.isnan() & other.isnan())
