"""Two steps of data-parallel training, where every rank but the first may have a fault.

faults -- rank 1 uses another configuration, the all-reduce of rank 2's second step is changed afterwards,
          and rank 3 makes no second update
"""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import triton
import triton.language as tl

from tracing import Workload

CONFIGS = [triton.Config({"BLOCK": 16}, num_warps=1), triton.Config({"BLOCK": 32}, num_warps=1)]


@triton.autotune(CONFIGS, key=["n"])
@triton.jit
def scale(x_ptr, weight_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * tl.load(weight_ptr + i))


@triton.jit
def halve(total_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(total_ptr + i) * 0.5)


def build(device: str, faults: bool = False, configs: int = 2) -> Workload:
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    fault = dist.get_rank() if faults else 0
    # without a GPU nothing is measured: the first configuration wins
    scale.configs = (CONFIGS[::-1] if fault == 1 else CONFIGS)[:configs]
    x = torch.full((32,), 1.0 + dist.get_rank(), device=device)
    weight = torch.nn.Parameter(torch.ones(32, device=device))
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def step(number: int) -> None:
        y, out = torch.zeros(32, device=device), torch.zeros(32, device=device)
        scale[lambda meta: (32 // meta["BLOCK"],)](x, weight.detach(), y, 32)
        if number == 0:
            y = functional.all_reduce(y, "sum", dist.group.WORLD) + 0
        else:
            dist.all_reduce(y, async_op=True).wait()
        if fault == 2 and number == 1:
            with torch._C._DisableTorchDispatch():  # without a notification to any mode
                y[5] += 1
        halve[(1,)](y, out, 32)
        weight.grad = out
        if not (fault == 3 and number == 1):
            optimizer.step()

    @torch.compiler.disable
    def train() -> torch.Tensor:
        step(0)
        step(1)
        return weight.detach()

    return Workload(lambda: train())
