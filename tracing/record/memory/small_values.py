"""Records the elements of small tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Literal

import torch

from tracing.model import Values

ELEMENTS = 64  # that a tensor has at most


def small_values(
    launch: int, side: Literal["before", "after"], tensors: Iterable[tuple[int, torch.Tensor]]
) -> list[Values]:
    """The elements of those tensors on the host that are small.

    tensors -- with their argument positions
    """
    small = []
    for position, tensor in tensors:
        if 0 < tensor.numel() <= ELEMENTS and tensor.untyped_storage().nbytes():
            with suppress(RuntimeError, NotImplementedError, TypeError):  # a quantized tensor has no numbers
                small.append(Values(launch, position, side, tuple(map(_value, elements(tensor)))))
    return small


def elements(tensor: torch.Tensor) -> list[bool | int | float | complex]:
    """The elements in logical order; those of a dtype that Python has no numbers for as its bytes."""
    flat = tensor.detach().reshape(-1)
    if flat.dtype == torch.float4_e2m1fn_x2:  # two numbers an element
        flat = flat.view(torch.uint8)
    values: list[bool | int | float | complex] = flat.tolist()
    return values


def _value(element: bool | int | float | complex) -> bool | int | float | str:
    if isinstance(element, complex):
        return str(element)
    return str(element) if isinstance(element, float) and not math.isfinite(element) else element
