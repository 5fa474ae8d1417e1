"""Cases whose results differ from eager's only by rounding, or in one element."""

from __future__ import annotations

import torch
import torch.nn.functional as functional

from tracing import Workload


@torch.library.custom_op("refereed::halved", mutates_args=())
def halved(x: torch.Tensor) -> torch.Tensor:
    if x.dtype != torch.float32:
        raise NotImplementedError(f"halved of {x.dtype}")
    return x / 2


@halved.register_fake
def _halved(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def build(device: str, what: str = "attention", width: int = 32) -> Workload:
    torch.manual_seed(0)
    if what == "attention":  # two blocks in bfloat16
        blocks = [
            torch.nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True)
            for _ in range(2)
        ]
        model = torch.nn.Sequential(*blocks).to(device, torch.bfloat16)
        x = torch.randn(2, width // 2, width, dtype=torch.bfloat16, device=device, requires_grad=True)
        return Workload(model, (x,), backward=True)
    if what == "embedding":
        weight = torch.randn(50, width // 2, device=device, requires_grad=True)
        index = torch.randint(0, 50, (125 * width,), device=device)
        return Workload(lambda index: functional.embedding(index, weight).sin(), (index,), backward=True)
    if what == "dropout":
        x = torch.randn(64, 64, device=device, requires_grad=True)
        return Workload(lambda x: functional.dropout(x.sin(), 0.3) * 2, (x,), backward=True)
    if what == "encoder":  # on a GPU, fused attention draws other numbers than its parts do
        encoder = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.2, batch_first=True)
        x = torch.randn(3, 7, width, device=device, requires_grad=True)
        return Workload(
            torch.nn.Sequential(encoder, torch.nn.Linear(width, 8)).to(device), (x,), backward=True
        )
    if what == "probabilities":
        return Workload(lambda x: torch.bernoulli(x.sigmoid()) + x, (torch.randn(77, 33, device=device),))
    if what == "doubles":

        def doubles(x: torch.Tensor) -> list[torch.Tensor]:
            narrow = x.float() if torch.compiler.is_compiling() else x
            return [narrow.sin().double(), (x.exp() @ x.t()).softmax(-1).sum(0)]

        return Workload(doubles, (torch.randn(16, 32, dtype=torch.float64, device=device),))
    if what == "opaque dropout":  # the operator has no float64
        x = torch.randn(64, 64, device=device)
        return Workload(lambda x: halved(functional.dropout(x.sin(), 0.3)) * 2, (x,))
    if what == "compiled itself":  # the branch captures a tensor that has a gradient
        weight = torch.randn(width, device=device, requires_grad=True)

        @torch.compile
        def branch(x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x.sin() * weight, lambda x: x.cos() * weight, (x,))

        x = torch.ones(4, width, device=device)
        return Workload(lambda x: branch(x) + 1, (x,), backward=True)
    if what == "mutated":

        def update(x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
            seen.add_(x.sin())
            return x * 3

        return Workload(update, (torch.randn(64, device=device), torch.randn(64, device=device)))
    if what in ("step", "scaled step"):
        model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.SiLU(), torch.nn.Linear(30, 5)).to(
            device
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

        def step(x: torch.Tensor) -> torch.Tensor:
            loss = model(x).square().mean()
            loss.backward()
            if what == "scaled step" and torch.compiler.is_compiling():
                optimizer.param_groups[0]["lr"] = 1.001e-2
            optimizer.step()
            return loss.detach()

        return Workload(step, (torch.randn(16, 20, device=device),))
    if what == "integers":
        return Workload(lambda x: x.sigmoid().argsort(-1), (torch.randn(8, 64, device=device),))
    raise ValueError(what)
