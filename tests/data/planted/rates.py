"""Two steps of a compiled optimizer; Inductor compiles the learning rate into a kernel.

- rate [code]: code of triton_*; launch 0. Another learning rate.
- decay [code]: code of triton_*; launch 0. Another weight decay.
- gradient [operator]: operator of aten::* or undecided. The loss is scaled, which only operators do.
"""

import torch

from tracing import Workload


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    weight = torch.nn.Parameter(torch.rand(8, 8, device=device))
    optimizer = torch.optim.SGD(
        [weight], lr=0.25 if fault == "rate" else 0.125, weight_decay=0.5 if fault == "decay" else 0.25
    )

    step = torch.compile(optimizer.step)

    @torch.compiler.disable
    def backward(x: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss = (x @ weight).square().sum()
        (loss * 3 if fault == "gradient" else loss * 2).backward()

    @torch.compiler.disable(recursive=False)
    def train(x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            backward(x)
            step()
        return weight.detach()

    return Workload(lambda x: train(x), (torch.rand(4, 8, device=device),))
