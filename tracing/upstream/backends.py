"""Triton's backends: the targets, the stages of each, and ptxas. Imports no torch."""

from __future__ import annotations

from pathlib import Path

from triton.backends import backends
from triton.backends.compiler import GPUTarget, Language
from triton.backends.nvidia import compiler as nvidia_compiler
from triton.compiler.compiler import make_backend
from triton.runtime.errors import PTXASError

# the package that holds a module for each backend
PACKAGE = "triton.backends."

__all__ = [
    "PACKAGE",
    "GPUTarget",
    "Language",
    "PTXASError",
    "backends",
    "default_assembler",
    "make_backend",
]


def default_assembler(arch: int) -> Path:
    """The ptxas with which the NVIDIA backend assembles for a compute capability times ten: 90."""
    return Path(nvidia_compiler.get_ptxas(arch).path)
