"""The default dtype of torch, as of the result of torch.arange(3) / 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def with_default_dtype(name: str) -> Iterator[None]:
    """While active, torch has another default dtype, "bfloat16"; a name of no such dtype changes nothing."""
    before = torch.get_default_dtype()
    dtype = getattr(torch, name, None)
    if isinstance(dtype, torch.dtype) and dtype.is_floating_point and dtype.itemsize > 1:
        torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
