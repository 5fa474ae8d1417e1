"""A graph of 200 nodes with one fault, planted into Inductor: `long_graph.py:fault=wrong`.

wrong   the lowering of erf gives 1 % too much
raises  the lowering of erf raises; that of cosh raises something else
"""

import torch
from torch._inductor import lowering

from tracing import Workload

aten = torch.ops.aten
_PLANTED: set[str] = set()


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


def build(device: str, fault: str = "wrong", nodes: int = 200) -> Workload:
    if fault not in _PLANTED:
        _PLANTED.add(fault)
        {"wrong": _wrong, "raises": _raises}[fault]()

    def fn(x: torch.Tensor) -> torch.Tensor:
        for step in range(nodes // 2):
            x = torch.sin(x) * 0.9
            if step == nodes // 3:
                x = torch.erf(x)
            if fault == "raises" and step == nodes // 3 + 2:
                x = torch.cosh(x)
        return x

    return Workload(fn, (torch.rand(4, 8, device=device),))
