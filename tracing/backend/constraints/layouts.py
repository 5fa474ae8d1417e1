"""A constraint on the strides of tensors in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import torch
from torch.fx import Node

from tracing.backend.constraints.constraint import Rejection, TensorConstraint
from tracing.backend.constraints.shapes import shape_text
from tracing.backend.node_values import is_view
from tracing.upstream.torch.symbolic_sizes import known

MemoryLayout: TypeAlias = Literal["contiguous", "channels_last", "channels_last_3d"]
_RANK = {"channels_last": 4, "channels_last_3d": 5}


@dataclass(frozen=True)
class LayoutConstraint(TensorConstraint):
    """Every tensor in memory has the required layout.

    layout  -- "contiguous"; "channels_last" (of 4 dimensions) and "channels_last_3d" (of 5) accept tensors of
               other ranks. Ignored where `strides` is given
    strides -- in elements, of the last dimensions; None in it accepts any: (None, 1) wants rows without gaps.
               Tensors of fewer dimensions are accepted
    views   -- False: results of operators that compute nothing (transpose, expand, slices) are not checked,
               only inputs, constants, and tensors that operators write

    A dimension of size 1 may have any stride, and so may tensors without elements.
    """

    layout: MemoryLayout = "contiguous"
    strides: Sequence[int | None] | None = None
    views: bool = False

    def __post_init__(self) -> None:
        if self.layout not in get_args(MemoryLayout):
            raise ValueError(f"{self.layout!r} is no layout; there are {', '.join(get_args(MemoryLayout))}")

    def applies_to(self, node: Node) -> bool:
        """False for views, unless `views` is true."""
        return self.views or not is_view(node)

    def finding(self, tensor: torch.Tensor) -> Rejection | None:
        """The strides of a tensor, if they violate the constraint."""
        if tensor.layout is not torch.strided:
            return Rejection(f"layout {tensor.layout}", self._required())
        pairs = self._pairs(tensor)
        if any(known(size == 0) for size in tensor.shape):
            return None
        answers = [known(size == 1) or _equal(stride, wanted) for size, stride, wanted in pairs]
        if all(answers):
            return None
        sizes_known = all(known(size >= 1) for size in tensor.shape)
        decided = sizes_known and any(
            _equal(stride, wanted) is False and known(size == 1) is False for size, stride, wanted in pairs
        )
        text = f"strides {tuple(tensor.stride())} of shape {shape_text(tensor)}"
        return Rejection(text, self._required(), decided)

    def _required(self) -> str:
        return self.layout if self.strides is None else f"strides {tuple(self.strides)}"

    def _pairs(self, tensor: torch.Tensor) -> list[tuple[int, int, int]]:
        # size, stride and wanted stride of each dimension that has one
        rank = tensor.dim()
        if self.strides is not None:
            last = range(rank - len(self.strides), rank) if rank >= len(self.strides) else range(0)
            wanted = zip(last, self.strides, strict=False)
            return [(tensor.shape[d], tensor.stride(d), one) for d, one in wanted if one is not None]
        order = [*range(rank - 1, -1, -1)]
        if self.layout != "contiguous":
            if rank != _RANK[self.layout]:
                return []
            order = [1, *range(rank - 1, 1, -1), 0]
        expected, pairs = 1, []
        for dimension in order:
            pairs.append((tensor.shape[dimension], tensor.stride(dimension), expected))
            expected = expected * tensor.shape[dimension]
        return pairs


def _equal(stride: int, wanted: int) -> bool | None:
    return known(stride == wanted)
