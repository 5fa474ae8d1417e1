"""pytorch#194490: a kernel reads a variable of its reduction loop after the loop.

Wrong: the generated kernel does not compile: `NameError: tmp8 is not defined`; eager works. Since torch 2.13.
Culprit: `TritonKernel.load` of Inductor: a gathered value that is loaded in the loop stays cached after it.
The fix, pull request 194777, keeps only values that are loaded outside of the loop. Needs symbolic sizes.
"""

import torch

from tracing import Workload


def normalised(variance: torch.Tensor, rows: torch.Tensor, update: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Scales the chosen rows of an update by their running variance, and returns both."""
    rows = rows[..., None]
    chosen = variance.gather(-2, rows)
    chosen = chosen.lerp(update.square().mean(-1, keepdim=True), 0.1)
    return variance.scatter(-2, rows, chosen), update / (chosen.sqrt() + 1e-8)


def build(device: str) -> Workload:
    variance = torch.rand(2, 64, 1, device=device)
    rows = torch.stack([torch.randperm(64)[:16] for _ in range(2)]).to(device)
    return Workload(normalised, (variance, rows, torch.rand(2, 16, 4096, device=device)), dynamic=True)
