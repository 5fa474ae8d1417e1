"""Executes a torch.autograd.Function as a graph of Dynamo has it: a forward graph, and a backward graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def autograd_function(
    forward: Callable[..., Any], backward: Callable[..., Any], *inputs: Any, **options: Any
) -> Any:
    """The results of the forward graph, whose gradients the backward graph computes.

    forward  -- gives the results, and what it saves for the backward graph
    backward -- reads the gradients of the results, then what was saved
    """

    class Applied(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            results, ctx.saved = forward(*inputs)
            made = results if isinstance(results, (list, tuple)) else [results]
            ctx.mark_dirty(*(made[i] for i in options.get("dirty_idx", ())))
            ctx.mark_non_differentiable(*(made[i] for i in options.get("non_differentiable_idx", ())))
            return results if isinstance(results, torch.Tensor) else tuple(made)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            made = backward(*gradients, *ctx.saved)
            return tuple(made) if isinstance(made, list) else made

    return Applied.apply(*inputs)  # type: ignore[no-untyped-call, unused-ignore]
