"""Triton's floating-point sanitizer: decides whether two kernels differ only by rounding.

Under FpSan an integer represents each float, and arithmetic is that of integers modulo a power of two, exact
and associative: kernels that only add in another order give equal bits. The sanitizer is compiled into the
kernel, so it needs a GPU, and Triton 3.8 or later.

Source: Triton's documentation, "Floating-Point Sanitizer (FpSan)".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import triton

from tracing.errors import Problem
from tracing.upstream.triton.knobs import fpsan_enabled, has_fpsan


def require_fpsan() -> None:
    """Raise Problem, with what is missing, where kernels cannot run under FpSan."""
    missing = [] if available() else [f"Triton 3.8 or later (this is {triton.__version__})"]
    if torch.version.hip or not torch.cuda.is_available():  # Triton has it for some AMD GPUs; not tested here
        missing.append("a GPU of NVIDIA's")
    if missing:
        raise Problem(f"FpSan wants {' and '.join(missing)}")


def available() -> bool:
    """True if this Triton has the sanitizer; the first release that has it is 3.8."""
    return has_fpsan()


@contextmanager
def instrumented() -> Iterator[None]:
    """While active, kernels are compiled with FpSan, if this Triton has it."""
    with fpsan_enabled():
        yield
