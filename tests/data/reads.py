"""A case whose results depend on environment variables, which it reads in every possible form."""

import os
import sys
from pathlib import Path

import torch

from tracing import Workload

sys.path.insert(0, str(Path(__file__).parent))
from reads_scale import SCALE

EVERYTHING = [dict(os.environ), os.environ.copy(), {**os.environ}, list(os.environ.items())]
SIGN = -1 if "NEGATIVE" in os.environ else 1
PASSWORD = os.environ.get("DB_PASSWORD")


def build(device: str) -> Workload:
    try:
        bias = float(os.environ["BIAS"])
    except KeyError:
        bias = 0.0

    def fn(x: torch.Tensor) -> torch.Tensor:
        return x * (2 if os.environ.get("FAULT") == "1" else SIGN) * SCALE + bias

    return Workload(fn, (torch.ones(4, device=device),))
