"""Kernels that are compiled for sm_90; this needs no GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel


@pytest.fixture
def compiled(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., CompiledKernel]:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def compiled(kernel: Any, *, capability: int = 90, **signature: Any) -> CompiledKernel:
        source = ASTSource(kernel, signature, {})
        return triton.compile(source, target=GPUTarget("cuda", capability, 32))

    return compiled
