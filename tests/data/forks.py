"""A case that forks between two kernels; `how` is what the child does then."""

import os
import sys

import torch
from torch import multiprocessing

from tracing import Workload


def _compute() -> None:
    x = torch.rand(64)
    for _ in range(200):
        x = x + torch.compile(torch.sin)(x)


def _work(how: str) -> None:
    if how == "exit":
        sys.exit(3)
    if how == "raise":
        raise ValueError("only in the child")
    if how == "compute":
        _compute()
        os._exit(0)


@torch.compiler.disable
def _forked(how: str) -> None:
    if how == "process":
        process = multiprocessing.get_context("fork").Process(target=_compute)
        process.start()
        process.join()
        return
    child = os.fork()
    if child:
        print(f"child ended with {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}", file=sys.stderr)
    else:
        _work(how)


def build(device: str, how: str = "return") -> Workload:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x) * x
        _forked(how)
        return torch.cos(y) + x

    return Workload(fn, (torch.rand(64, device=device),))
