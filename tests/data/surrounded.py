"""Some 30 nodes around a case that is wrong when compiled: `surrounded.py:name=pytorch_197434`.

Nodes that read the results hide a fault of memory that is reused: `after=0` leaves them out.
"""

from pathlib import Path
from typing import Any

import torch

from tracing import Workload
from tracing.program.case import load_case

UPSTREAM = Path(__file__).parent / "upstream"


def build(device: str, name: str = "pytorch_175966", how: str = "", after: int = 6) -> Workload:
    inner = load_case(f"{UPSTREAM / name}.py" + (f":how={how}" if how else "")).build(device)

    def fn(other: torch.Tensor, *args: Any) -> Any:
        for _ in range(13 if after == 0 else 8):
            other = torch.sin(other) * 0.9
        results = inner.fn(*args)
        results = results if isinstance(results, tuple) else (results,)
        read = []
        for one in results if after else ():
            for _ in range(after):
                one = one.clone() + 0
            read.append(one)
        return other, *results, *read

    return Workload(fn, (torch.rand(4, 8, device=device), *inner.args), backward=inner.backward)
