"""Higher-order operators in operators of ATen, as torch executes them where nothing compiles them (`DENSE`).

FlexAttention by its parts rounds as its kernels do, also in gradients; its dense form differs from that in
its gradients, which autograd derives from other operators.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch.nn.attention.flex_attention import _vmap_for_bhqkv

from tracing.upstream.contract import require
from tracing.upstream.torch.attention_parts import autocast_done, scores, weighed

# torch._higher_order_ops.flex_attention is the operator: it hides the module of that name
_module = import_module("torch._higher_order_ops.flex_attention")
_while_loop = import_module("torch._higher_order_ops.while_loop").while_loop_dense
_scan = import_module("torch._higher_order_ops.scan").generic_scan
_associative_scan = import_module("torch._higher_order_ops.associative_scan").generic_associative_scan


def _cond(
    pred: Any, true_graph: Callable[..., Any], false_graph: Callable[..., Any], operands: Sequence[Any] = ()
) -> Any:
    return (true_graph if pred else false_graph)(*operands)


DENSE: Mapping[str, Callable[..., Any]] = {
    "flex_attention": _module.sdpa_dense,
    "flex_attention_backward": _module.sdpa_dense_backward,
    "cond": _cond,
    "while_loop": _while_loop,
    "while_loop_stack_output": partial(_while_loop, stack_output=True),
    "map_impl": import_module("torch._higher_order_ops.map").map_dense,
    "scan": lambda combine, init, xs, others=(): _scan(combine, init, xs, additional_inputs=others),
    "associative_scan": lambda combine, xs, others=(): _associative_scan(
        combine, xs, additional_inputs=others
    ),
    "invoke_subgraph": lambda subgraph, _name, *operands: subgraph(*operands),
}
# Of these, the ones whose first argument decides what is executed: a bool, or a function that returns one.
DECIDING = ("cond", "while_loop", "while_loop_stack_output")
# Asks whether the tensors are on a GPU: only there `combine_mode="pointwise"` becomes a kernel.
ASSOCIATIVE_SCAN = "torch._higher_order_ops.associative_scan"

_reads_by_tensors = import_module("torch._dynamo._trace_wrapped_higher_order_op").TransformGetItemToIndex


def flex_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Callable[..., torch.Tensor],
    block_mask: Sequence[Any],
    scale: float,
    kernel_options: Mapping[str, Any],
    score_mod_captures: Sequence[Any] = (),
    mask_mod_captures: Sequence[Any] = (),
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Output, [B, H, Q, E]; logarithm to base 2 of the sums, and largest scores in its units, [B, H, Q].

    The parameters are those of torch; `kernel_options` has no effect.
    """
    batch, heads = query.shape[:2]
    key, value = (one.repeat_interleave(heads // one.shape[1], 1) for one in (key, value))
    key, value = (one.expand(batch, *one.shape[1:]).to(query.dtype) for one in (key, value))
    with autocast_done(query, key, value) as (query, key, value):
        products = scores(query, key, scale)
        positions = [torch.arange(size, device=query.device) for size in products.shape]
        with _reads_by_tensors():
            changed = _elementwise(score_mod, 1, score_mod_captures)(
                products, *positions, *score_mod_captures
            )
            kept = _elementwise(block_mask[-1], 0, mask_mod_captures)(*positions, *mask_mod_captures)
        products = torch.where(kept, changed, -torch.inf)
        largest, sums = products.max(-1).values, products.logsumexp(-1)
        sums = sums.masked_fill(largest == -torch.inf, -torch.inf)
        return weighed(products, value, generated=True), sums / math.log(2), largest / math.log(2)


def _elementwise(function: Callable[..., Any], scores: int, captures: Sequence[Any]) -> Callable[..., Any]:
    # a function of scores and of numbers for batch, head, query and key, as one of tensors
    mapped: Callable[..., Any] = _vmap_for_bhqkv(
        function, prefix=(0,) * scores, suffix=(None,) * len(captures)
    )
    return mapped


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    forward = [*inspect.signature(DENSE["flex_attention"]).parameters]
    require(forward[:5] == ["query", "key", "value", "score_mod", "block_mask"], "FlexAttention's arguments")
    require(forward[-2] == "score_mod_other_buffers", "what a score_mod of FlexAttention captures")
    backward = [*inspect.signature(DENSE["flex_attention_backward"]).parameters]
    require(backward[-2] == "score_mod_other_buffers", "what a score_mod captures, in the backward pass")
    x = torch.ones(1, 1, 2, 4)
    mask = (None, lambda b, h, q, k: q >= 0)
    result = DENSE["flex_attention"](x, x, x, lambda score, b, h, q, k: score, mask, 1.0, {})
    require(torch.equal(result[0], x), "FlexAttention of equal values")
    x = torch.linspace(-1, 1, 64).reshape(1, 4, 4, 4).requires_grad_()
    bias = torch.arange(4.0).requires_grad_()
    y = x.detach()[:, :2] + 1
    rest: tuple[Any, ...] = (lambda score, b, h, q, k, bias: score + bias[h] * q, mask, 0.5, {}, (bias,), ())
    own, known = (function(x, y, y, *rest) for function in (flex_attention, DENSE["flex_attention"]))
    near = all(torch.allclose(a, b, atol=1e-5) for a, b in zip(own, known, strict=True))
    require(near, "FlexAttention by its parts")
    left, right = (torch.autograd.grad(one[0].square().sum(), (x, bias)) for one in (own, known))
    near = all(torch.allclose(a, b, atol=1e-4) for a, b in zip(left, right, strict=True))
    require(near, "gradients of FlexAttention by its parts")
    x, one = torch.ones(3), torch.ones((), dtype=torch.int64)
    grown = DENSE["while_loop"](lambda i, x: bool(i < 3), lambda i, x: (i + 1, x * 2), (one, x), ())
    rows = DENSE["while_loop_stack_output"](
        lambda i, x: bool(i < 3), lambda i, x: (i + 1, x * 2), (one, x), ()
    )
    require(torch.equal(grown[1], x * 4) and torch.equal(rows[0], one + torch.arange(1, 3)), "while_loop")
    last, sums = DENSE["scan"](lambda c, x, y: (c + x, c * y), (one * 0.0,), (x,), (one * 2,))
    require(last.item() == 3 and torch.equal(sums, torch.arange(3.0) * 2), "scan")
    (sums,) = DENSE["associative_scan"](lambda a, b, c: (a + b + c,), (x,), (one,))
    require(torch.equal(sums, torch.tensor([1.0, 3.0, 5.0])), "associative_scan")
    (rows,) = DENSE["map_impl"](lambda x, y: (x + y,), (x,), (one,))
    require(torch.equal(rows, x + 1), "map")
    require(
        getattr(import_module(ASSOCIATIVE_SCAN), "associative_scan", None), "associative_scan in its module"
    )
