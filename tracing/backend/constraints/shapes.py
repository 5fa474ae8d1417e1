"""A constraint on the alignment of sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.fx import Node

from tracing.backend.constraints.constraint import Rejection, TensorConstraint
from tracing.backend.node_values import tensors_of
from tracing.upstream.torch.symbolic_sizes import example, known

_MULTIPLES = (*range(1, 17), 32, 64)  # torch does not conclude from `size % 16 == 0` that `size % 8` is 0


@dataclass(frozen=True)
class ShapeConstraint(TensorConstraint):
    """Every size is a multiple of `alignment`.

    alignment  -- in elements; 1 accepts every size
    dimensions -- the checked dimensions, negative ones from the last; None: all. A tensor that has no such
                  dimension is accepted

    Sizes of 0 and 1 are accepted: gradients of biases have a dimension of size 1. A symbolic size is decided
    by its range, by guards, and by this call.
    """

    alignment: int = 1
    dimensions: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.alignment < 1:
            raise ValueError(f"alignment is {self.alignment} elements; at least 1 is needed")

    def finding(self, tensor: torch.Tensor) -> Rejection | None:
        """The first misaligned size, or else the first that cannot be decided."""
        undecided = None
        for dimension in self._dimensions(tensor.dim()):
            size = tensor.shape[dimension]
            multiple = is_multiple(size, self.alignment)
            if multiple is True or (undecided is not None and multiple is None):
                continue
            finding = Rejection(
                f"size {size_text(size)} of dimension {dimension}, shape {shape_text(tensor)}",
                f"a multiple of {self.alignment}",
                multiple is not None,
            )
            if finding.decided:
                return finding
            undecided = finding
        return undecided

    def unmatched(self, nodes: Sequence[Node]) -> Iterator[str]:
        """The dimensions that no tensor has."""
        ranks = {tensor.dim() for node in nodes for _, tensor in tensors_of(node)}
        for one in self.dimensions or ():
            if not any(-rank <= one < rank for rank in ranks):
                yield f"no tensor has dimension {one}"

    def _dimensions(self, rank: int) -> Iterator[int]:
        if self.dimensions is None:
            yield from range(rank)
        else:
            yield from (one % rank for one in self.dimensions if -rank <= one < rank)


def is_multiple(size: int | torch.SymInt, of: int) -> bool | None:
    """True if a size is 1 or a multiple of `of`; None: it is in this call, and need not be in others."""
    if isinstance(size, int):
        return size == 1 or size % of == 0
    if any(known(size % (of * k) == 0) for k in _MULTIPLES):
        return True
    return None if known(size % of == 0) is None else False


def shape_text(tensor: torch.Tensor) -> str:
    """A shape as Python writes a tuple, with symbols by their names."""
    return str(tuple(tensor.shape))


def size_text(size: int | torch.SymInt) -> str:
    """A size; of a symbolic one its value in this call, too."""
    value = example(size)
    return str(size) if isinstance(size, int) or value is None else f"{size} ({value} in this call)"
