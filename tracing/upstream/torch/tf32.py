"""The precision in which a GPU multiplies float32: TF32 has 10 bits of the mantissa."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tracing.upstream.contract import require


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """While active, products and convolutions of float32 on a GPU are computed in TF32, or not."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    with tf32(True):
        require(torch.get_float32_matmul_precision() == "high", "products in TF32")
        require(torch.backends.cudnn.allow_tf32, "convolutions in TF32")
    after = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    require(after == before, "the previous precision afterwards")
