"""A kernel in Gluon, which Triton's interpreter cannot execute; the case judges the result itself."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from tracing import Workload


@gluon.jit
def scaled(x_ptr, out_ptr, n, BLOCK: gl.constexpr, THREADS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [THREADS], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(out_ptr + at, gl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


def build(device: str) -> Workload:
    x = torch.rand(200, device="cuda")

    @torch.compiler.disable
    def doubled(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        scaled[(2,)](x, out, 200, BLOCK=128, THREADS=torch.cuda.get_device_properties("cuda").warp_size)
        torch.testing.assert_close(out, x * 2)
        return out

    return Workload(lambda x: doubled(x), (x,))
