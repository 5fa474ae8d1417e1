"""A case on one device from one seed: what it gives, and whether it agrees with eager."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from tracing.case import build
from tracing.model import Case, Outcome, Workload
from tracing.record.device import Device


@dataclass(frozen=True, slots=True)
class Experiment:
    """A case whose inputs are equal each time it is run."""

    case: Case
    device: Device
    seed: int  # of torch's random generators

    def workload(self) -> Workload:
        """What the case runs, built anew."""
        torch.manual_seed(self.seed)
        return build(self.case, self.device.type)

    def results(self, workload: Workload, compiler: Callable[[Any], Any]) -> dict[str, torch.Tensor]:
        """The outputs of a workload, and the gradients of every leaf that wants one, by name.

        compiler -- torch.compile; for eager what gives back its argument
        """
        torch.manual_seed(self.seed)
        outputs = _tensors(compiler(workload.fn)(*workload.args, **workload.kwargs))
        results = {f"output {i}": output for i, output in enumerate(outputs)}
        if workload.backward:
            torch.autograd.backward([o.sum() for o in outputs if o.requires_grad])
            results |= {
                f"grad of {name}": leaf.grad for name, leaf in _leaves(workload) if leaf.grad is not None
            }
        return {name: tensor.detach() for name, tensor in results.items()}


def judged(actual: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> Outcome:
    """Whether results agree with those of eager, within torch.testing.assert_close's tolerances."""
    if actual.keys() != expected.keys():
        return Outcome("differs", f"compiled gives {sorted(actual)}, eager gives {sorted(expected)}")
    for name, tensor in actual.items():
        try:
            torch.testing.assert_close(tensor, expected[name], equal_nan=True)
        except AssertionError as error:
            return Outcome("differs", f"{name}: {' '.join(str(error).split())}")
    if not actual:
        return Outcome("passed", "it returns no tensor and has no gradient: nothing was compared with eager")
    return Outcome(
        "passed",
        "the result agrees with eager" if len(actual) == 1 else f"all {len(actual)} results agree with eager",
    )


def _leaves(workload: Workload) -> list[tuple[str, torch.Tensor]]:
    inputs = _tensors((workload.args, workload.kwargs))
    named = [(f"input {i}", tensor) for i, tensor in enumerate(inputs)]
    if isinstance(workload.fn, torch.nn.Module):
        named += list(workload.fn.named_parameters())
    return [(name, tensor) for name, tensor in named if tensor.requires_grad and tensor.is_leaf]


def _tensors(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]
