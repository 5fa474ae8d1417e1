"""The dtype that torch gives numbers without one, as in torch.arange(3) / 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def with_default_dtype(name: str) -> Iterator[None]:
    """While active, it is another one: "bfloat16"."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, name))
    try:
        yield
    finally:
        torch.set_default_dtype(before)
