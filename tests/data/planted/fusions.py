"""Two graphs of Inductor; their pointwise kernels have one name, in which no number occurs.

Recordings: A = plain; A2 = `# two graphs` => `# two graphs,\n    # one after the other`

- first [code] (B = `x * 2` => `x * 2.5`): code of triton_*; launch 0. The first graph multiplies by 2.5.
- second [code] (B = `y * 3` => `y * 3.5`): code of triton_*; launch 1. The second graph multiplies by 3.5.
- renamed [code] (B = `torch.sin(y)` => `torch.cos(y)`): code of triton_* or missing of triton_*. A cosine,
  not a sine: the kernel has another name.
- bound [code] (B = `max=6.0` => `max=5.0`): code of triton_*; launch 2. A clamp has another bound.
- between [operator] (B = `return x` => `return x.mul_(2)`): operator of aten::mul_*; runs b. An operator
  between the graphs changes what the next one reads.
"""

import torch

from tracing import Workload


@torch.compiler.disable
def aside(x: torch.Tensor) -> torch.Tensor:
    return x


def fn(x: torch.Tensor) -> torch.Tensor:
    # two graphs
    x = torch.sin(x * 2)
    y = aside(x)
    y = torch.sin(y * 3)
    y = aside(y)
    return torch.clamp(torch.sin(y), max=6.0) + torch.clamp(y * 40, max=6.0)


def build(device: str) -> Workload:
    return Workload(fn, (torch.rand(64, device=device),))
