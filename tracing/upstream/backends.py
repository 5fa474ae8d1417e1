"""Triton's backends: the targets, the stages of each, and ptxas. Imports no torch."""

from __future__ import annotations

from triton.backends import backends
from triton.backends.compiler import GPUTarget, Language
from triton.backends.nvidia import compiler as nvidia_compiler
from triton.compiler.compiler import make_backend
from triton.runtime.errors import PTXASError

# the package that holds a module for each backend
PACKAGE = "triton.backends."

__all__ = ["PACKAGE", "GPUTarget", "Language", "PTXASError", "backends", "make_backend", "nvidia_compiler"]
