"""Kernels of Triton's tutorials, compiled by themselves: the matrix product of 03, and attention of 06.

The tutorials are loaded unchanged from the folder that TUTORIALS names; they are no part of this project.
"""

from __future__ import annotations

import os
import runpy
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

Compile = Callable[[], None]


def compiles(folder: Path) -> dict[str, Compile]:
    """What compiles each kernel once, with empty caches; for a virtual GPU that executes nothing."""
    os.environ["PYTEST_VERSION"] = pytest_version()  # by which 06 keeps to one configuration
    product = runpy.run_path(str(folder / "03-matrix-multiplication.py"), run_name="tutorial")[
        "matmul_kernel"
    ]
    attention = runpy.run_path(str(folder / "06-fused-attention.py"), run_name="tutorial")["_attn_fwd"]
    return {"03 matmul": _once(product, _product()), "06 attention": _once(attention, _attention())}


def pytest_version() -> str:
    """The version of the running pytest, as it tells its children."""
    import pytest

    return pytest.__version__


def _once(tuned: Any, arguments: dict[str, Any]) -> Compile:
    function = tuned.fn

    def compile() -> None:
        with tempfile.TemporaryDirectory() as cache, triton.knobs.cache.scope():
            triton.knobs.cache.dir = cache
            function.device_caches.clear()
            function.warmup(**arguments, grid=(1,))

    return compile


def _product() -> dict[str, Any]:
    a, b, c = (torch.empty((512, 512), dtype=torch.float16) for _ in range(3))
    sizes = {"M": 512, "N": 512, "K": 512, "ACTIVATION": "", "num_warps": 8, "num_stages": 3}
    strides = {f"stride_{matrix}{rows}": 512 for matrix, rows in zip("abc", "mkm", strict=True)}
    strides |= {f"stride_{matrix}{columns}": 1 for matrix, columns in zip("abc", "knn", strict=True)}
    blocks = {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 256, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8}
    return {"a_ptr": a, "b_ptr": b, "c_ptr": c, **sizes, **strides, **blocks}


def _attention() -> dict[str, Any]:
    rows, width = 2 * 1024, 64
    described = {
        f"desc_{name}": TensorDescriptor.from_tensor(
            torch.empty(rows, width, dtype=torch.float16), [count, width]
        )
        for name, count in {"q": 128, "k": 64, "v": 64, "o": 128}.items()
    }
    sizes = {"sm_scale": 0.5, "M": torch.empty(2, 1024), "Z": 1, "H": 2, "N_CTX": 1024, "HEAD_DIM": width}
    settings = {"FP8_OUTPUT": False, "STAGE": 3, "warp_specialize": False, "IS_HOPPER": True}
    blocks = {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 4, "num_stages": 2}
    return {**sizes, **described, **settings, **blocks}
