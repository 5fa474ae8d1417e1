"""A case with results and state of every kind; each option except "" plants one difference in it."""

from __future__ import annotations

import threading

import torch

from tracing import Workload

EMPTY = {"": (0, 4), "empty": (4, 0)}


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.register_buffer("seen", torch.zeros(1))


def build(device: str, b: str = "") -> Workload:
    model = Model().to(device)
    optimizer = torch.optim.SGD([model.weight], lr=0.5)
    cache: list[torch.Tensor] = [torch.zeros(4, device=device)]

    def fn(x: torch.Tensor) -> object:
        loss = (model.weight * x).sum()
        loss.backward()
        optimizer.step()
        if b == "lr":
            optimizer.param_groups[0]["lr"] = 0.25
        model.seen += 2 if b == "buffer" else 1
        cache[0] += 2 if b == "closure" else 1
        x += 2 if b == "input" else 1
        if b == "raise":
            raise ValueError(f"no result in {object()}")
        ones = torch.ones(4, device=device)
        return {
            "tensor": torch.full((4,), 0x3F800000, dtype=torch.int32) if b == "dtype" else ones,
            "shape": ones.view(2, 2) if b == "shape" else ones,
            "stride": torch.ones(2, 3).t() if b == "stride" else torch.ones(3, 2),
            "empty": torch.empty(EMPTY.get(b, (0, 4))),
            "none": ones if b == "none" else None,
            "tuple": (ones, ones) if b == "length" else (ones,),
            "kind": [1] if b == "list" else (1,),
            "number": -0.0 if b == "zero" else 0.0,
            "nan": float("nan"),
            "flag": 1 if b == "type" else True,
            "text": "b" if b == "text" else "a",
            "other" if b == "key" else "key": 0,
            "lock": threading.Lock(),
        }

    hidden = torch.compiler.disable(fn)  # else it would be compiled, which takes seconds
    x = torch.full((4,), 2.0 if b == "start" else 1.0, device=device)
    return Workload(lambda x: hidden(x), (x,))
