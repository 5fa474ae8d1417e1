"""pytorch#186799: gradients of amax are NaN, and output 0 differs by float16's rounding as well.

Wrong: all gradients but that of w3 are NaN; output 0 is within rounding.
Culprit: the FX node `eq` of the forward graph, and its lowering. It compares the input of `aten.amax` with
its result: the kernel `triton_poi_fused__unsafe_view_add_eq_2` computes that input anew in float32, and the
result was rounded to float16. Where no element of a channel is equal, the backward divides 0 by 0.
No fix is merged as of the thread; `torch.max(…).values` and `emulate_precision_casts` avoid it.
Reproduces with torch 2.13.0 on the CPU (C++) and on the virtual GPU (shape of a comment in the thread; the
first post's atan2 in float32 does not reproduce here).
"""

import torch

from tracing import Workload


def fn(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, w3: torch.Tensor) -> torch.Tensor:
    feat = x @ w1
    feat = feat + feat @ w2
    pooled = feat.amax(dim=1, keepdim=True)
    return feat + pooled.expand(-1, x.shape[1], -1) @ w3


def build(device: str, batch: int = 3, tokens: int = 10, width: int = 8) -> Workload:
    def leaf(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float16, device=device, requires_grad=True)

    weights = [leaf(width, width) for _ in range(3)]
    return Workload(fn, (leaf(batch, tokens, width), *weights), backward=True)
