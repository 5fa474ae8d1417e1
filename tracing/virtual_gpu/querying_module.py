"""Distinguish device queries: the program gets the target's answer, torch's own code the true one.

torch may be built for CPUs. If its own code saw a CUDA device, it would look for a driver, or compile CUDA
code for tensors in host memory.
"""

from __future__ import annotations

import sys

from tracing.upstream.torch.higher_order import ASSOCIATIVE_SCAN

_TORCH = ("torch", "functorch", "torchgen")
_OURS = "tracing"
_TRITON = "triton"
_FOR_THE_PROGRAM = "invoke_and_store_as_constant"  # a function of Dynamo that handles calls in traced code


def program_asks(*, triton: bool, depth: int = 1) -> bool:
    """True if the program calls a function.

    triton -- True: Triton's own code counts as the program's
    depth  -- number of frames between this function's caller and the querying code
    """
    frame = sys._getframe(depth + 1)
    module = frame.f_globals.get("__name__") or ""
    return is_program(module, triton=triton) or frame.f_code.co_name == _FOR_THE_PROGRAM


def is_program(module: str, *, triton: bool) -> bool:
    """True if code of this module belongs to the program."""
    if module == ASSOCIATIVE_SCAN:  # it asks about the program's tensors
        return True
    root = module.partition(".")[0]
    return triton if root == _TRITON else root not in (*_TORCH, _OURS)
