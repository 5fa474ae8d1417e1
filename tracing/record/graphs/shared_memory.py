"""Find the results of a call of a graph that share memory with each other, or with its inputs."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import torch

from tracing.model import OverlappingInput, SharedBytes
from tracing.upstream.torch.dispatch_modes import functions_disabled


class ByteRange(NamedTuple):
    """The memory of an input or a result of a call."""

    start: int  # address
    stop: int
    side: Literal["input", "output"]
    position: int


class PassedInput(NamedTuple):
    """An input of a call, which may be freed before the call ends."""

    memory: ByteRange
    tensor: weakref.ref[torch.Tensor]


def passed_inputs(inputs: Sequence[Any]) -> list[PassedInput]:
    """The inputs whose memory a result could share."""
    with functions_disabled():
        known = [(value, _range(value, "input", position)) for position, value in enumerate(inputs)]
    return [PassedInput(memory, weakref.ref(value)) for value, memory in known if memory is not None]


def shared_memory(results: Sequence[Any], inputs: Sequence[PassedInput]) -> tuple[SharedBytes, ...]:
    """The results that have bytes in common with an earlier result, or with an input that is still there.

    Tensors with gaps between their elements are left out: others may lie there.
    """
    with functions_disabled():
        made = [_range(value, "output", position) for position, value in enumerate(results)]
    alive = [one.memory for one in inputs if one.tensor() is not None]
    shared: list[SharedBytes] = []
    overlapping: list[ByteRange] = []
    for memory in sorted([*alive, *(one for one in made if one is not None)]):
        overlapping = [one for one in overlapping if one.stop > memory.start]
        shared += [_shared(memory, one) for one in overlapping if "output" in (memory.side, one.side)]
        overlapping.append(memory)
    return tuple(sorted(shared, key=lambda one: (one.output, one.side, one.other)))


def overlapping_inputs(inputs: Sequence[Any]) -> dict[int, OverlappingInput]:
    """The inputs of a call, by position, that lie between the first and the last byte of another one."""
    groups: list[list[tuple[int, int, int]]] = []  # of first byte, past the last one, position
    stop = 0
    with functions_disabled():
        known = [(*span, i) for i, one in enumerate(inputs) if (span := _span(one)) is not None]
        for one in sorted(known):
            if not groups or one[0] >= stop:
                groups.append([])
            groups[-1].append(one)
            stop = max(stop, one[1])
        return {
            i: OverlappingInput(number, start - group[0][0], tuple(inputs[i].stride()))
            for number, group in enumerate(one for one in groups if len(one) > 1)
            for start, _, i in group
        }


def first_bytes(values: Iterable[Any]) -> set[int]:
    """The addresses at which the memory of some tensors begins."""
    with functions_disabled():
        return {span[0] for one in values if (span := _span(one)) is not None}


def _shared(a: ByteRange, b: ByteRange) -> SharedBytes:
    # of two results the later one shares the memory of the earlier one
    output, other = (a, b) if (a.side, a.position) > (b.side, b.position) else (b, a)
    return SharedBytes(output.position, other.side, other.position)


def _range(value: Any, side: Literal["input", "output"], position: int) -> ByteRange | None:
    span = _span(value)
    if span is None or span[1] - span[0] != value.numel() * value.element_size():
        return None
    return ByteRange(*span, side, position)


def _span(value: Any) -> tuple[int, int] | None:
    # the addresses of a tensor's first byte, and past its last; None: it has no memory
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.numel() == 0:
        return None
    extent = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    try:
        start = value.data_ptr()
    except RuntimeError:  # a tensor without memory, as a fake one
        return None
    return (start, start + extent * value.element_size()) if start else None
