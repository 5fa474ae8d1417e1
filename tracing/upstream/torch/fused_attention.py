"""Attention that a GPU computes in one kernel: the random numbers by which it drops weights.

A call returns the state of the generator that its numbers follow from: a seed and an offset. So it can be
repeated. Which weights it keeps, the operator itself shows: zeros as queries and keys weigh all values alike,
and columns of the identity as values make each weight an element of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from tracing.upstream.contract import require
from tracing.upstream.torch.dispatch_modes import dispatch_disabled
from tracing.upstream.torch.operator_schemas import schema_of

_SEED, _OFFSET, _BOTH = "philox_seed", "philox_offset", "rng_state"  # names of results
_UNUSED = "unused"  # next to `_BOTH`
_WORD = (1 << 64) - 1
_EFFICIENT_BACKWARD = torch.ops.aten._scaled_dot_product_efficient_attention_backward.default


class GeneratorState(NamedTuple):
    """From which a GPU's generator draws."""

    seed: int
    offset: int  # numbers that it has drawn before, of each thread


class DroppedAttention(NamedTuple):
    """What decides the numbers that a call draws."""

    operator: Any  # torch.ops.aten._scaled_dot_product_flash_attention.default
    queries: Sequence[int]  # shape [B, H, Q, D]
    keys: int
    dtype: torch.dtype
    chance: float  # that a weight is dropped


def state_results(operator: Any) -> tuple[int, ...]:
    """Positions of the results of an operator that are a generator's state; (): it returns none."""
    names = [one.name for one in schema_of(operator).returns]
    if _BOTH in names:
        return (names.index(_BOTH),)
    return (names.index(_SEED), names.index(_OFFSET)) if {_SEED, _OFFSET} <= {*names} else ()


def unwritten_results(operator: Any, *, draws: bool) -> tuple[int, ...]:
    """Positions of the results of an operator that hold anything.

    draws -- it draws random numbers in this call: then its state is written
    """
    names = [one.name for one in schema_of(operator).returns]
    unwritten = (_UNUSED,) if draws else (_SEED, _OFFSET, _BOTH, _UNUSED)
    return tuple(i for i, one in enumerate(names) if one in unwritten)


def generator_state(results: Sequence[torch.Tensor]) -> GeneratorState:
    """The state that the results at `state_results` hold: [2], or [] each, of 64 bits."""
    with dispatch_disabled():
        seed, offset = (int(word) & _WORD for one in results for word in one.view(torch.int64).reshape(-1))
    return GeneratorState(seed, offset)


@contextmanager
def generator_at(state: GeneratorState, device: torch.device) -> Iterator[None]:
    """While active, the generator of a GPU continues from a state; afterwards, from where it was."""
    index = device.index if device.index is not None else torch.cuda.current_device()
    generator = torch.cuda.default_generators[index]
    before = generator.get_state()
    generator.manual_seed(state.seed)
    generator.set_offset(state.offset)
    try:
        yield
    finally:
        generator.set_state(before)


def kept_weights(attention: DroppedAttention, state: GeneratorState, device: torch.device) -> torch.Tensor:
    """[B, H, Q, K] bool: the weights that a call of attention on a GPU keeps."""
    batch, heads, queries, width = attention.queries
    query = torch.zeros(batch, heads, queries, width, dtype=attention.dtype, device=device)
    key = query.new_zeros(batch, heads, attention.keys, width)
    kept = torch.empty(batch, heads, queries, attention.keys, dtype=torch.bool, device=device)
    for start in range(0, attention.keys, width):
        columns = torch.arange(min(width, attention.keys - start), device=device)
        value = torch.zeros_like(key)
        value[..., start + columns, columns] = 1
        with generator_at(state, device):
            weighed = attention.operator(**_arguments(attention, query, key, value))[0]
        kept[..., start + columns] = weighed[..., columns] != 0
    return kept


def with_state_on_host(operator: Any, args: Sequence[Any]) -> Sequence[Any]:
    """The arguments of an operator; of the gradients of efficient attention, the state on the CPU.

    The operator reads it there by its address, unless a CUDA graph is captured: a state on a GPU is a
    segmentation fault.
    """
    if operator is not _EFFICIENT_BACKWARD:
        return args
    names = [one.name for one in schema_of(operator).arguments]
    return [one.cpu() if name in (_SEED, _OFFSET) else one for name, one in zip(names, args, strict=False)]


def _arguments(attention: DroppedAttention, *tensors: torch.Tensor) -> dict[str, Any]:
    given = dict(zip(("query", "key", "value"), tensors, strict=True))
    rest = {"attn_bias": None, "compute_log_sumexp": False, "dropout_p": attention.chance}
    names = {one.name for one in schema_of(attention.operator).arguments}
    return {**given, **{name: one for name, one in rest.items() if name in names}}


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    for name in ("flash", "efficient", "cudnn"):
        operator = getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention").default
        require(
            len(state_results(operator)) in (1, 2), f"the state of a generator that {name} attention returns"
        )
        own = [one.name for one in schema_of(operator).arguments if not one.has_default_value()]
        given = _arguments(DroppedAttention(operator, (), 0, torch.half, 0.5), *[torch.empty(0)] * 3)
        require({*own} <= given.keys() and "dropout_p" in given, f"the arguments of {name} attention")
        unwritten = unwritten_results(operator, draws=False)
        require({*state_results(operator)} <= {*unwritten}, f"what {name} attention leaves unwritten")
    passed = [one.name for one in schema_of(_EFFICIENT_BACKWARD).arguments]
    require({_SEED, _OFFSET} <= {*passed}, "the state that the gradients of efficient attention read")
    require(not state_results(torch.ops.aten.mm.default), "an operator that returns no state")
    require(
        not unwritten_results(torch.ops.aten.mm.default, draws=False), "an operator that writes all results"
    )
    require(hasattr(torch.Generator, "set_offset"), "a generator whose offset can be set")
    words = torch.tensor([7, 8], dtype=torch.uint64)
    require(generator_state([words]) == generator_state([*words]) == (7, 8), "a state of one or two results")
