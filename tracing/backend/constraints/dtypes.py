"""A constraint on the dtypes of tensors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

import torch

from tracing.backend.constraints.constraint import Rejection, TensorConstraint


@dataclass(frozen=True)
class DtypeConstraint(TensorConstraint):
    """Every tensor has one of the allowed dtypes.

    allowed_dtypes -- torch dtypes, or their names: "float16", "torch.float16", "half". Integers and bool are
                      checked only if one of their dtypes is listed
    """

    allowed_dtypes: Collection[torch.dtype | str]

    def __post_init__(self) -> None:
        names = sorted({dtype_name(one) for one in self.allowed_dtypes})
        object.__setattr__(self, "allowed_dtypes", tuple(names))

    def finding(self, tensor: torch.Tensor) -> Rejection | None:
        """The dtype of a tensor, if it is not allowed."""
        name = dtype_name(tensor.dtype)
        if name in self.allowed_dtypes or not (_is_float(tensor.dtype) or self._integers()):
            return None
        return Rejection(name, " or ".join(map(str, self.allowed_dtypes)))

    def _integers(self) -> bool:
        return not all(_is_float(getattr(torch, str(one))) for one in self.allowed_dtypes)


def _is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def dtype_name(dtype: torch.dtype | str) -> str:
    """The name of a dtype without "torch."; raises ValueError for an unknown name, with similar ones."""
    if isinstance(dtype, str):
        name = dtype.removeprefix("torch.")
        value = getattr(torch, name, None)
        if not isinstance(value, torch.dtype):
            known = [one for one in vars(torch) if isinstance(getattr(torch, one), torch.dtype)]
            near = ", ".join(get_close_matches(name, known, n=3, cutoff=0.4)) or "float32, float16"
            raise ValueError(f"{dtype!r} is not a dtype of torch; nearest: {near}")
        dtype = value
    return str(dtype).removeprefix("torch.")
