"""The native library of Triton: its MLIR, LLVM and pass bindings.

Imports no torch: the compiler half of this project works without it.
"""

from __future__ import annotations

from triton._C import libtriton
from triton._C.libtriton import amd, ir, llvm, nvidia
from triton._C.libtriton import interpreter as native_interpreter

__all__ = ["amd", "ir", "libtriton", "llvm", "native_interpreter", "nvidia"]
