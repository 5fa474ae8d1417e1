"""Three steps of training in eager, on what a kernel prepares; what the optimizer keeps is a result.

A2 runs an operator more, whose result is dropped.

- rate [state]: result or operator of aten::* or undecided. The last step has another learning rate.
- momentum [state]: result or operator of aten::* or undecided. The last step has another momentum.
- skipped [state]: result or operator of aten::* or undecided. The last step is skipped.
- state [state]: result or operator of aten::*. Only the optimizer's momentum is changed, after the last step.
- group [state]: result. Only the learning rate that the optimizer holds at the end differs.
- seed [state]: start or result or undecided. The model starts with other weights.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def centre(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) - 0.5)


def finish(optimizer: torch.optim.Optimizer, fault: str) -> None:
    (group,) = optimizer.param_groups
    if fault == "rate":
        group["lr"] *= 2
    if fault == "momentum":
        group["momentum"] = 0.5
    if fault != "skipped":
        optimizer.step()
    if fault == "rate":
        group["lr"] /= 2  # only what the step did is left
    if fault == "momentum":
        group["momentum"] = 0.9
    if fault == "state":
        for state in optimizer.state.values():
            state["momentum_buffer"].zero_()
    if fault == "group":
        group["lr"] *= 2


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    if fault == "seed":
        torch.manual_seed(7)
    model = torch.nn.Linear(8, 8).to(device)
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125, momentum=0.9)

    @torch.compiler.disable
    def train(x: torch.Tensor) -> None:
        centred = torch.zeros_like(x)
        centre[(4,)](x, centred, BLOCK=16)
        for step in range(3):
            optimizer.zero_grad()
            model(centred).square().mean().backward()
            if variant:
                model(centred)
            if step < 2:
                optimizer.step()
        finish(optimizer, fault)

    return Workload(lambda x: train(x), (torch.rand(8, 8, device=device),))
