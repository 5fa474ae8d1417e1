"""A graph of 200 nodes with one fault, most of them planted into Inductor: `long_graph.py:fault=wrong`.

wrong     the lowering of erf gives 1 % too much
raises    the lowering of erf raises; that of cosh raises something else
dies      the lowering of erf ends the process
unstable  an operator gives other numbers each time
reduced   one node is a sum: another kernel without Inductor's `triton.persistent_reductions`
"""

import os

import torch
from torch._inductor import lowering

from tracing import Workload

aten = torch.ops.aten
_PLANTED: set[str] = set()


@torch.library.custom_op("longgraph::noisy", mutates_args=())
def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + int.from_bytes(os.urandom(2)) / 2**16


noisy.register_fake(torch.empty_like)


def _wrong() -> None:
    original = lowering.lowerings[aten.erf.default]
    lowering.lowerings[aten.erf.default] = lambda x: lowering.lowerings[aten.mul.Tensor](original(x), 1.01)


def _raises() -> None:
    def raising(error: Exception):  # type: ignore[no-untyped-def]
        def lowered(x):  # type: ignore[no-untyped-def]
            raise error

        return lowered

    lowering.lowerings[aten.erf.default] = raising(ValueError("no erf today"))
    lowering.lowerings[aten.cosh.default] = raising(AssertionError("no cosh either"))


def _dies() -> None:
    lowering.lowerings[aten.erf.default] = lambda x: os.abort()


FAULTS = {"wrong": _wrong, "raises": _raises, "dies": _dies}
NODES = {"unstable": noisy, "reduced": lambda x: x - x.sum(1, keepdim=True)}


def build(device: str, fault: str = "wrong", nodes: int = 200) -> Workload:
    if fault not in _PLANTED:
        _PLANTED.add(fault)
        FAULTS.get(fault, lambda: None)()

    def fn(x: torch.Tensor) -> torch.Tensor:
        for step in range(nodes // 2):
            x = torch.sin(x) * 0.9
            if step == nodes // 3:
                x = NODES.get(fault, torch.erf)(x)
            if fault == "raises" and step == nodes // 3 + 2:
                x = torch.cosh(x)
        return x

    return Workload(fn, (torch.rand(4, 8, device=device),))
