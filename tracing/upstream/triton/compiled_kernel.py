"""Kernels that Triton has compiled, and the point at which it launches one."""

from __future__ import annotations

from contextlib import AbstractContextManager

from triton.compiler import CompiledKernel

from tracing.upstream.contract import require_methods, require_parameters
from tracing.upstream.patch import Wrapper, patched

__all__ = ["CompiledKernel", "around_launches", "load_binary"]


def around_launches(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, each launch that Triton makes itself calls `wrapper(original)` before it.

    The arguments are those of CompiledKernel.launch_metadata: kernel, final grid, stream, and all arguments
    of the kernel, constants included. Launches by Inductor's static launcher do not pass here.
    """
    return patched(CompiledKernel, "launch_metadata", wrapper)


def load_binary(kernel: CompiledKernel) -> None:
    """Load the binary onto the current device, which sets `kernel.function`; a launch does this as well."""
    kernel._init_handles()


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require_methods(CompiledKernel, "launch_metadata", "_init_handles")
    require_parameters(CompiledKernel.launch_metadata, "grid", "stream", "args")
