"""Operators that execute graphs of their own, as operators of ATen: cond, while_loop, scan, FlexAttention."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from tracing.judge.fx.no_reference import NoReference
from tracing.upstream.torch import higher_order as upstream
from tracing.upstream.torch.attention_parts import rounded_anew

Operands: TypeAlias = Sequence[Any]  # of tensors, and of numbers
Subgraph: TypeAlias = Callable[..., Operands]

_ITERATIONS = 1 << 16  # of a loop: a damaged run never ends one
_SCORES = {"cpu": 1 << 20, "cuda": 1 << 28}  # 4 minutes of a core; 2 GB in float64, several times


def cond(pred: Any, true_graph: Subgraph, false_graph: Subgraph, operands: Operands = ()) -> Operands:
    """The results of the branch that is taken."""
    return (true_graph if bool(pred) else false_graph)(*operands)


def while_loop(condition: Subgraph, body: Subgraph, carried: Operands, others: Operands = ()) -> Operands:
    """What the last iteration leaves; raises NoReference for an endless loop."""
    for _ in range(_ITERATIONS):
        if not bool(condition(*carried, *others)[0]):
            return carried
        carried = body(*carried, *others)
    raise NoReference(f"a while_loop of more than {_ITERATIONS} iterations")


def scan(combine: Subgraph, init: Operands, xs: Operands, others: Operands = ()) -> Operands:
    """What the last iteration leaves; then the other results of all iterations, stacked."""
    carried, rows = list(init), []
    for i in range(xs[0].shape[0]):
        made = combine(*carried, *(x[i] for x in xs), *others)
        carried = list(made[: len(init)])
        rows.append([one.clone() for one in made[len(init) :]])
    return [*carried, *(torch.stack(column) for column in zip(*rows, strict=True))]


def associative_scan(combine: Subgraph, xs: Operands, others: Operands = ()) -> Operands:
    """The combinations of each row with all rows before it."""
    rows = [[x[0] for x in xs]]
    for i in range(1, xs[0].shape[0]):
        rows.append([*combine(*rows[-1], *(x[i] for x in xs), *others)])
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def invoke_subgraph(graph: Subgraph, _name: str, *operands: Any) -> Operands:
    """The results of a region that is compiled once for several calls."""
    return graph(*operands)


def flex_attention(query: Any, key: Any, value: Any, score_mod: Subgraph, mask: Operands, *rest: Any) -> Any:
    """Output, logarithm of the sums, largest scores; raises NoReference for too many scores."""
    _require_feasible(query, key, rest[1])
    return upstream.flex_attention(query, key, value, _single(score_mod), _masked(mask), *rest)


def flex_attention_backward(
    query: Any, key: Any, value: Any, out: Any, logsumexp: Any, grad_out: Any, grad_logsumexp: Any,
    score_mod: Subgraph, joint: Subgraph, mask: Operands, *rest: Any,
) -> Any:  # fmt: skip
    """The gradients of query, key and value; raises NoReference if its score_mod captures tensors."""
    _require_feasible(query, key, rest[1])
    if rest[2:] and rest[2]:
        raise NoReference("the gradients of what a score_mod of flex_attention captures")
    if grad_out is not None:  # the gradient of a sum's logarithm counts as what a row has in common does
        wide = logsumexp.dtype
        moved = (out.to(wide) * (grad_out.to(wide) - rounded_anew(grad_out))).sum(-1) * math.log(2)
        grad_logsumexp = moved if grad_logsumexp is None else grad_logsumexp + moved
    return upstream.DENSE["flex_attention_backward"](
        query, key, value, out, logsumexp, grad_out, grad_logsumexp, _single(score_mod), joint,
        _masked(mask), *rest,
    )  # fmt: skip


def _require_feasible(query: torch.Tensor, key: torch.Tensor, options: Any) -> None:
    # without this option, the setting for products decides
    if query.dtype == torch.float32 and "tf32" in str(dict(options or {}).get("FLOAT32_PRECISION", "")):
        raise NoReference("flex_attention whose kernel_options ask for TF32")
    scores, most = query.shape[:-1].numel() * key.shape[-2], _SCORES["cuda" if query.is_cuda else "cpu"]
    if scores > most:
        raise NoReference(
            f"flex_attention of {scores} scores, of which {most} can be computed on this machine"
        )


def run_and_save_rng_state(operator: Callable[..., Any], *operands: Any, **settings: Any) -> tuple[None, Any]:
    """The result of an operator, after the state of the generator, which `saved_states.py` leaves out."""
    return None, operator(*operands, **settings)


def _single(graph: Subgraph) -> Callable[..., Any]:
    return lambda *operands: graph(*operands)[0]


def _masked(mask: Operands) -> Operands:
    return (*mask[:-1], _single(mask[-1]))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        cond, while_loop, scan, associative_scan, invoke_subgraph, flex_attention, flex_attention_backward,
        run_and_save_rng_state,
    )
}  # fmt: skip
