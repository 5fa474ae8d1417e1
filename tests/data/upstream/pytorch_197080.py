"""pytorch#197080: a graph pass rewrites an uneven split into sizes that do not add up.

Wrong: the compile fails with `ValueError: Split sizes add up to 12 but got the tensor's size of 10`.
Culprit: the post-grad pass `normalization_aten_pass` (fx_passes/split_cat.py), node `split`; it is off by
default, and the case switches it on.
No fix is merged as of the thread.
Reproduces with torch 2.13.0 on the CPU (C++) and on the virtual GPU.
"""

import torch
import torch._inductor.config

from tracing import Workload

torch._inductor.config.post_grad_fusion_options = {"normalization_aten_pass": {}}


def build(device: str, width: int = 10) -> Workload:
    return Workload(
        lambda x: [part * 2 for part in torch.split(x, 4, dim=1)], (torch.randn(2, width, device=device),)
    )
