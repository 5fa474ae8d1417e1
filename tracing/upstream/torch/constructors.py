"""torch's functions that make tensors, also if the program has replaced them.

Programs replace `torch.empty` to fill new memory with NaN, and `with torch.device(...)` has no effect on what
replaced it.
"""

from __future__ import annotations

import torch

from tracing.upstream.contract import require

_FUNCTIONS = torch._C._VariableFunctions
arange, empty, zeros = _FUNCTIONS.arange, _FUNCTIONS.empty, _FUNCTIONS.zeros


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require(empty((2, 3), dtype=torch.int64, device="cpu").shape == (2, 3), "the function torch.empty")
    require(zeros((2,), device="cpu").tolist() == [0.0, 0.0], "the function torch.zeros")
    require(arange(3, dtype=torch.uint8, device="cpu").tolist() == [0, 1, 2], "the function torch.arange")
