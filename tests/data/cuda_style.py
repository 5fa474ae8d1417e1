"""A program in the style of Triton's tutorials: queries the device at import, and puts tensors on "cuda"."""

import torch
import triton
import triton.language as tl
from triton.runtime import driver

from tracing import Workload

DEVICE = driver.active.get_active_torch_device()
PROPERTIES = driver.active.utils.get_device_properties(DEVICE.index)


def is_cuda():
    return driver.active.get_current_target().backend == "cuda"


@triton.jit
def row_max(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    step = tl.num_programs(0)
    for row in tl.range(tl.program_id(0), rows, step, num_stages=num_stages):
        at = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=-float("inf"))
        tl.store(out_ptr + row, tl.max(x, axis=0))


def maxima(x: torch.Tensor) -> torch.Tensor:
    """[rows] the maximum of each row, by as many programs as the device holds at a time."""
    assert x.is_cuda and x.device == DEVICE
    rows, columns = x.shape
    out = torch.empty(rows, device=x.device)
    block = triton.next_power_of_2(columns)
    kernel = row_max.warmup(x, out, rows, columns, BLOCK=block, num_stages=2, num_warps=2, grid=(1,))
    kernel._init_handles()
    warp = PROPERTIES["warpSize"]
    occupancy = PROPERTIES["max_num_regs"] // (kernel.n_regs * warp * 2)
    if not is_cuda():
        occupancy = min(occupancy, PROPERTIES["max_threads_per_sm"] // warp // 2)
    programs = min(PROPERTIES["multiprocessor_count"] * occupancy, rows)
    kernel[(programs, 1, 1)](x, out, rows, columns, block, 2)
    return out


def build(device: str) -> Workload:
    x = torch.rand((5, 100), device="cuda", dtype=torch.float32)

    @torch.compiler.disable
    def checked(x: torch.Tensor) -> torch.Tensor:
        largest = maxima(x)
        torch.cuda.synchronize()
        torch.testing.assert_close(largest, x.amax(1))
        return largest

    def fn(x: torch.Tensor) -> torch.Tensor:
        shift = torch.arange(5, device=x.device) if x.is_cuda else torch.full((5,), float("nan"))
        return checked(x) + shift.to("cuda") * torch.cuda.get_device_capability()[0]

    return Workload(fn, (x,))
