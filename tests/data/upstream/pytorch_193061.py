"""pytorch#193061: gradients of the scale and shift of chained LayerNorms are never written.

Wrong: the gradient of `table`, in rows 2 and 3 (those of the second norm): uninitialised memory.
Culprit: `codegen_mix_order_reduction` of Inductor's scheduler. Its last step, `buf =
workspace[…].sum(dim=0)`, rebinds the Python variable of a buffer that is a view into the gradient's `cat`,
so the view is not written.
Fix: pytorch#193103 writes through the view with `copy_()`. `TORCHINDUCTOR_MIX_ORDER_REDUCTION=0` avoids it.
Needs a GPU (Inductor mixes reduction orders only for the device type "cuda"); not reproduced here.
"""

import torch
import torch.nn.functional as functional

from tracing import Workload


def norm(x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift


def fn(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    scale_a, shift_a, scale_b, shift_b = table.chunk(4, 0)
    return norm(torch.tanh(norm(x, scale_a, shift_a)), scale_b, shift_b)


def build(device: str, rows: int = 0, width: int = 0) -> Workload:
    rows, width = rows or (64 if device == "cpu" else 8192), width or (32 if device == "cpu" else 1024)
    x = torch.randn(rows, width, device=device, requires_grad=True)
    return Workload(fn, (x, torch.randn(4, width, device=device, requires_grad=True)), backward=True)
