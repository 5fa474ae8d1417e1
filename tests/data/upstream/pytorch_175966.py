"""pytorch#175966: int64 values made by arange overflow, because the kernel computes them in 32 bits.

Wrong: the output. 11 values times 10**9 wrap around at 2**31.
Culprit: the lowering of `aten.mul` of an `iota`: as an index expression it becomes int32 arithmetic in the
kernel `triton_poi_fused_arange_mul_0` (`cpp_fused_arange_mul_0` on the CPU). torch's CompilerBisector names
the subsystem `lowerings`, `mul`. No fix is merged as of the thread.
Reproduces with torch 2.13.0 on the CPU (C++) and on the virtual GPU.
"""

import torch

from tracing import Workload


def build(device: str, count: int = 11, factor: int = 1_000_000_000) -> Workload:
    return Workload(lambda: torch.arange(0, count, dtype=torch.int64, device=device) * factor)
