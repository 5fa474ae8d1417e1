"""pytorch#198094: a result is kept in the storage of an input that a later operation overwrites.

how=slice     returns zeros: slice_scatter(x, …) is stored in x, then x.zero_() overwrites it
how=diagonal  returns 2 everywhere: the scatter writes what is there already, and x itself is returned
how=clone     returns the clamped values: the clone after index_fill_ is x itself

Wrong: the output; the mutated input is right. Eager returns a tensor with a storage of its own.
Culprit: the post-grad pass `reinplace_inplaceable_ops` (`can_inplace` in fx_passes/reinplace.py), node
`slice_scatter`, `diagonal_scatter` or `index_put`.
Fix: pytorch#198096 reinplaces into a graph input only if the `copy_` epilogue writes this node's result
back.
Reproduces with torch 2.13.0 on the CPU (C++) and on the virtual GPU, all three.
"""

import torch

from tracing import Workload


def kept_slice(x: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    y = torch.slice_scatter(x, source[1:3], dim=0, start=1, end=3)
    x.zero_()
    return y


def kept_diagonal(x: torch.Tensor) -> torch.Tensor:
    y = torch.diagonal_scatter(x, x.diagonal())
    x.fill_(2)
    return y


def kept_clone(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    x.index_fill_(0, rows, -1.0)
    y = x.clone()
    x.clamp_(0, 3)
    return y


def build(device: str, how: str = "slice") -> Workload:
    x = torch.arange(24.0, device=device).reshape(4, 6)
    if how == "slice":
        return Workload(kept_slice, (x, torch.arange(-12.0, 12.0, device=device).reshape(4, 6)))
    if how == "diagonal":
        return Workload(kept_diagonal, (torch.arange(25.0, device=device).reshape(5, 5),))
    if how == "clone":
        return Workload(kept_clone, (x, torch.tensor([1, 3], device=device)))
    raise ValueError(how)
