"""Some 30 nodes around a case that is wrong when compiled: `surrounded.py:name=pytorch_197434`."""

from pathlib import Path
from typing import Any

import torch

from tracing import Workload
from tracing.program.case import load_case

UPSTREAM = Path(__file__).parent / "upstream"


def build(device: str, name: str = "pytorch_175966", how: str = "") -> Workload:
    inner = load_case(f"{UPSTREAM / name}.py" + (f":how={how}" if how else "")).build(device)

    def fn(other: torch.Tensor, *args: Any) -> Any:
        for _ in range(8):
            other = torch.sin(other) * 0.9
        results = inner.fn(*args)
        results = results if isinstance(results, tuple) else (results,)
        after = []
        for one in results:
            for _ in range(6):
                one = one.clone() + 0
            after.append(one)
        return other, *after

    return Workload(fn, (torch.rand(4, 8, device=device), *inner.args), backward=inner.backward)
