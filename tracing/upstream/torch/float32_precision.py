"""The precision in which a GPU multiplies float32: "high" allows TF32, which has 10 bits of mantissa."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tracing.upstream.contract import require


def float32_precision() -> str:
    """The precision of this process: "highest", "high" or "medium"; "" if a newer setting of torch has it."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # torch does not mix the settings
        return ""


@contextmanager
def with_float32_precision(precision: str) -> Iterator[None]:
    """While active, this process multiplies float32 in a precision; "": in its own."""
    before = float32_precision()
    if not precision or not before:
        yield
        return
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    before = float32_precision()
    with with_float32_precision("high"):
        require(float32_precision() == "high", "products in TF32")
    require(float32_precision() == before, "the previous precision afterwards")
