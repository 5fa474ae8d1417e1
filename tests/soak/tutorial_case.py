"""Runs one of Triton's tutorials unchanged; TUTORIALS names their folder.

A tutorial that does nothing at import is called as its own tests and main program call it, with the smallest
sizes that these use.
"""

import os
import runpy
from pathlib import Path

import torch

from tracing import Workload

CALLS = {
    "06-fused-attention": [
        ("test_op", (1, 2, 128, 64, causal, False, mode, provider))
        for causal, mode, provider in (
            (False, "bwd", "triton-fp16"), (True, "bwd", "triton-fp16"), (False, "fwd", "triton-fp8"),
        )
    ],
    "09-persistent-matmul": [
        ("validate", (32, 32, 32, torch.float16)),
        ("validate", (300, 200, 128, torch.float16)),
    ],
}  # fmt: skip


def build(device: str, name: str = "01-vector-add") -> Workload:
    path = Path(os.environ["TUTORIALS"]) / f"{name}.py"

    @torch.compiler.disable
    def executed() -> None:
        names = runpy.run_path(str(path), run_name="tutorial")
        for function, arguments in CALLS.get(name, ()):
            names[function](*arguments)

    return Workload(lambda: executed())
