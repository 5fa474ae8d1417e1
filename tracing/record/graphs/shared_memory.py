"""Find the results of a call of a graph that share memory with each other, or with its inputs."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import torch

from tracing.model import SharedBytes

ByteRange: TypeAlias = tuple[int, int]  # of the first byte, and past the last


class PassedInput(NamedTuple):
    """An input of a call, which may be freed before the call ends."""

    position: int
    span: ByteRange
    tensor: weakref.ref[torch.Tensor]


def passed_inputs(inputs: Sequence[Any]) -> list[PassedInput]:
    """The inputs whose memory a result could share."""
    spans = [(position, value, _span(value)) for position, value in enumerate(inputs)]
    return [
        PassedInput(position, span, weakref.ref(value)) for position, value, span in spans if span is not None
    ]


def shared_memory(results: Sequence[Any], inputs: Sequence[PassedInput]) -> tuple[SharedBytes, ...]:
    """The results that have bytes in common with an earlier result, or with an input that is still there.

    Tensors with gaps between their elements are left out: others may lie there.
    """
    shared: list[SharedBytes] = []
    earlier: list[tuple[int, ByteRange]] = []
    alive = [one for one in inputs if one.tensor() is not None]
    for position, value in enumerate(results):
        if (span := _span(value)) is None:
            continue
        shared += [SharedBytes(position, "output", one) for one, of in earlier if _overlap(span, of)]
        shared += [SharedBytes(position, "input", one.position) for one in alive if _overlap(span, one.span)]
        earlier.append((position, span))
    return tuple(shared)


def _span(value: Any) -> ByteRange | None:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.numel() == 0:
        return None
    extent = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    start = value.data_ptr()
    if extent != value.numel() or start == 0:
        return None
    return start, start + extent * value.element_size()


def _overlap(a: ByteRange, b: ByteRange) -> bool:
    return a[0] < b[1] and b[0] < a[1]
