"""One of Triton's tutorials, executed as it stands: TUTORIALS is the folder that has them.

Those that do nothing when they are imported are called as their own tests and main programs call them, with
the smallest sizes that these have.
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
