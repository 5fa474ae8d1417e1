"""Triton's bindings of cuBLAS and hipBLASLt, computed by torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from tracing.interpreter.builder import not_executable
from tracing.upstream.patch import replaced
from tracing.upstream.triton.libtriton import amd, nvidia


@contextmanager
def installed() -> Iterator[None]:
    """While active, `nvidia.cublas.CublasLt` and `amd.hipblas.HipblasLt` of libtriton need no library."""
    with ExitStack() as stack:
        for vendor, library, name in ((nvidia, "cublas", "CublasLt"), (amd, "hipblas", "HipblasLt")):
            if hasattr(vendor, library):
                stack.enter_context(replaced(getattr(vendor, library), name, Blas))
        yield


class Blas:
    """Products of row-major matrices, the second transposed, with float32 accumulation."""

    def __init__(self, workspace: torch.Tensor) -> None: ...

    def matmul(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        """c = a @ b.T

        a, b, c -- [M, K], [N, K] and [M, N], of one dtype
        """
        c.copy_(_product(a, b))

    def gemm(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, alpha: float, beta: float
    ) -> None:
        """d = alpha * a @ b.T + beta * c"""
        d.copy_(alpha * _product(a, b) + beta * c.float())

    def block_scaled_matmul_mxfp8(self, *tensors: torch.Tensor) -> None:
        raise not_executable("cuBLAS's product of MXFP8 matrices")

    def block_scaled_matmul_nvfp4(self, *tensors: torch.Tensor) -> None:
        raise not_executable("cuBLAS's product of NVFP4 matrices")


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.matmul(a.float(), b.float().T)
