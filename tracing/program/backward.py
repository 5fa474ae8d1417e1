"""Compute the gradients of what a workload returned."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tracing.program.structure import facts_of
from tracing.upstream.torch.pytrees import tree_leaves


def differentiate(returned: object) -> None:
    """Compute the gradients of the sum of all tensors that require them, in any containers and dataclasses.

    Of a complex tensor, real and imaginary parts are summed.
    """
    tensors = [one for one in _tensors(returned) if one.requires_grad]
    real = [torch.view_as_real(one.resolve_conj()) if one.is_complex() else one for one in tensors]
    torch.autograd.backward([one.sum() for one in real])


def _tensors(returned: object) -> Iterator[torch.Tensor]:
    for leaf in tree_leaves(returned):
        members = [leaf] if isinstance(leaf, torch.Tensor) else facts_of(leaf, "").values()
        yield from (one for one in members if isinstance(one, torch.Tensor))
