"""Constraints on the bytes of one tensor, and of all tensors that are alive at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.fx import Graph

from tracing.backend.constraints.constraint import GraphConstraint, Rejection, TensorConstraint
from tracing.backend.constraints.shapes import shape_text
from tracing.backend.liveness import memory_use
from tracing.model import Violation
from tracing.upstream.torch.symbolic_sizes import example, known


@dataclass(frozen=True)
class MemoryConstraint(TensorConstraint):
    """Every tensor has at most `max_bytes` of elements; `PeakMemoryConstraint` limits all tensors."""

    max_bytes: int

    def finding(self, tensor: torch.Tensor) -> Rejection | None:
        """The bytes of the elements of a tensor, if they are too many."""
        size = tensor.numel() * tensor.element_size()
        fits = known(size <= self.max_bytes)
        if fits:
            return None
        name = str(tensor.dtype).removeprefix("torch.")
        text = f"{bytes_text(size)}: {name} {shape_text(tensor)}"
        return Rejection(text, f"at most {bytes_text(self.max_bytes)} a tensor", fits is False)


@dataclass(frozen=True)
class PeakMemoryConstraint(GraphConstraint):
    """The tensors that are alive at once have at most `max_bytes`: see `tracing.backend.liveness`."""

    max_bytes: int

    def check_graph(self, graph: Graph) -> Violation | None:
        """The first node at which too many bytes are alive, or, if none is certain, at which there may be."""
        undecided = None
        for use in memory_use(graph):
            fits = known(use.total <= self.max_bytes)
            if fits or (undecided is not None and fits is None):
                continue
            text = f"{bytes_text(use.total)} in {use.tensors} tensors at once"
            finding = Rejection(text, f"at most {bytes_text(self.max_bytes)} at once", fits is False)
            if finding.decided:
                return finding.at(use.node, self)
            undecided = finding.at(use.node, self)
        return undecided


def bytes_text(size: int | torch.SymInt) -> str:
    """Bytes with thousands separators; for symbolic sizes the formula and the value in this call."""
    if isinstance(size, int):
        return f"{size:,} bytes"
    value = example(size)
    return f"{size} bytes" + (f" ({value:,} in this call)" if value is not None else "")
