"""Registers a hook of a tensor as a graph of Dynamo has it: as a graph that the backward executes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def register_hook(tensor: torch.Tensor, hook: Callable[..., Sequence[Any]], *captured: Any) -> torch.Tensor:
    """The tensor itself, whose gradient the hook replaces.

    hook -- reads the gradient and what it captured; gives the new gradient, or None: it stays as it is
    """

    def replaced(gradient: torch.Tensor) -> Any:
        [made] = hook(gradient, *captured)
        return made

    if tensor.requires_grad:  # results are executed without gradients
        tensor.register_hook(replaced)  # type: ignore[no-untyped-call, unused-ignore]
    return tensor
