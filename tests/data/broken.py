"""Code with graph breaks, recompilations, and a frame that is compiled too often."""

import torch

from tracing import Workload


def scaled(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n


def named(x: torch.Tensor, name: str) -> torch.Tensor:
    return x.sin() if name == "a" else x.cos()


def looped(x: torch.Tensor, times: int) -> torch.Tensor:
    for n in range(2, 2 + times):
        print("a graph cannot print")
        x = scaled(x, n)
    return x


def program(x: torch.Tensor, times: int, names: str) -> torch.Tensor:
    y = looped(x, times)
    if y.sum() > 0:
        y = y + 1
    torch._dynamo.graph_break()
    for name in names:
        torch._dynamo.graph_break()
        y = named(y, name)
    return y


def build(device: str, times: int = 2, names: str = "abcdefghijkl") -> Workload:
    return Workload(program, (torch.ones(4, device=device), times, names))
