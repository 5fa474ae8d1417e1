"""The silu case with one configuration a kernel: no autotuner chooses another in the next run."""

import torch._inductor.config

from tracing import Workload
from tracing.program.case import load_case

torch._inductor.config.triton.autotune_pointwise = False


def build(device: str) -> Workload:
    return load_case("silu").build(device)
