"""Execute a small graph, and name its results: outputs, gradients, inputs afterwards, shared storages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tracing.minify.small_graph import SmallGraph
from tracing.model import PlainValue
from tracing.program.building import building
from tracing.program.structure import Facts

SEED = 0


def graph_results(small: SmallGraph, function: Callable[..., Any]) -> Facts:
    """The results of one execution from new inputs.

    function -- the graph's module, or what a compiler made of it

    Gradients are those of the returned tensors, each weighted by the gradient that it had in the case.
    """
    torch.manual_seed(SEED)
    with building():
        given = small.arguments()
    names = [node.name for node in small.module.graph.nodes if node.op == "placeholder"]
    inputs = {name: one for name, one in zip(names, given, strict=True) if isinstance(one, torch.Tensor)}
    outputs = flat(function(*given))
    facts: Facts = {f"output {number}": one.detach() for number, one in enumerate(outputs)}
    facts |= _shared(inputs, outputs)
    if small.backward:
        roots = [(one, weight) for one, weight in zip(outputs, weights(small, outputs), strict=True)
                 if one.requires_grad]  # fmt: skip
        if roots:
            torch.autograd.backward([one for one, _ in roots], [weight for _, weight in roots])
        gradients = {f"grad of {name}": one.grad for name, one in inputs.items() if one.is_leaf}
        facts |= {name: grad.detach() for name, grad in gradients.items() if grad is not None}
    facts |= {f"input {name} afterwards": one.detach() for name, one in inputs.items()}
    return facts


def flat(value: Any) -> list[torch.Tensor]:
    """The tensors of nested tuples and lists, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for part in value for one in flat(part)] if isinstance(value, (tuple, list)) else []


def weights(small: SmallGraph, outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The gradient of each output: the recorded one, or ones."""
    known: list[torch.Tensor | None] = [None] * len(outputs)
    if len(small.returned) == len(outputs):  # no node returns several tensors
        known = [small.gradients.get(name) for name in small.returned]
    return [
        torch.ones_like(one) if grad is None or grad.shape != one.shape or grad.dtype != one.dtype else grad
        for one, grad in zip(outputs, known, strict=True)
    ]  # fmt: skip


def _shared(inputs: dict[str, torch.Tensor], outputs: Sequence[torch.Tensor]) -> Facts:
    owners = {_address(one): f"input {name}" for name, one in reversed(inputs.items()) if one.numel()}
    facts: Facts = {}
    for number, one in enumerate(outputs):
        if one.layout == torch.strided and one.numel():
            name = f"output {number}"
            owner = owners.setdefault(_address(one), name)
            if owner != name:
                facts[f"storage of {name}"] = PlainValue("storage", f"that of {owner}")
    return facts


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
