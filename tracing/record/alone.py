"""One recorded launch alone, again and again on the inputs that it had: what does it leave?

Each replay starts from the same bytes: contents that were kept, and zeros everywhere else. What it leaves is
compared bit by bit with what the first left. Two more start with other bytes instead of the zeros: elements
that are others both times, and were the same before, depend on memory that nobody was seen to write.

On a GPU it is Triton's own launch. Without one it is the interpreter, with the programs in another order in
each replay: a race between programs shows, one between the threads of a program does not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tracing.interpreter import permuted
from tracing.record.digest import digest
from tracing.record.outputs import load
from tracing.record.remade import Remade, remade

_RANGES = 4  # that are told of those in which elements differ
_FILLS = (0xFF, 0x7B)  # bytes that differ in each float: NaN, large numbers
_NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Side:
    """A kernel and what it is launched with."""

    module: str  # the text of a file with KERNEL, CONSTANTS and OPTIONS
    facts: Mapping[str, Any]  # "grid", "values", "storages" and "tensors", as in a repro's launch.json
    contents: Mapping[str, bytes]  # of arguments before the launch: safetensors files
    outputs: Sequence[str]  # arguments that are compared


def replayed(sides: Sequence[Side], times: int) -> dict[str, Any]:
    """Replay a kernel `times` times beyond the first, and another on the same inputs if two sides are given.

    What is found consists of what JSON has: analyze.alone.Alone is its form. Memory: that of the arguments
    five times. A kernel that faults makes CUDA unusable for this process.

    Raises what compiling and launching raise.
    """
    series = [_series(side, times) for side in sides]
    found: dict[str, Any] = {"device": _device(), "a": series[0][0], "b": None, "apart": []}
    if len(series) > 1:
        left, others = series[0][1], series[1][1]
        apart = {name: _Difference.between(left[name], others[name]) for name in left}
        found |= {"b": series[1][0], "apart": _told(apart)}
    return found


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


def _series(side: Side, times: int) -> tuple[dict[str, Any], Tensors]:
    with remade(side.module) as kernel:
        memory = _memory(side, 0x00)
        first = _left(side, kernel, memory, 0)
        outcomes = [{name: digest(tensor).bits for name, tensor in first.items()}]
        changed = {name: _Difference.none(tensor) for name, tensor in first.items()}
        for order in range(1, times + 1):
            found = _left(side, kernel, memory, order)
            now = {name: _Difference.between(first[name], tensor) for name, tensor in found.items()}
            same = dict(outcomes[0])
            outcomes.append(same | {n: digest(found[n]).bits for n, one in now.items() if one.any})
            changed = {name: changed[name].joined(one) for name, one in now.items()}
        unwritten = {name: ~one.mask for name, one in changed.items()}
        for fill in _FILLS:
            poisoned = _left(side, kernel, _memory(side, fill), 0)
            for name, mask in unwritten.items():
                mask &= _Difference.between(first[name], poisoned[name]).mask
    told = {name: _Difference(mask, 0.0) for name, mask in unwritten.items()}
    return {"outcomes": outcomes, "changed": _told(changed), "unwritten": _told(told)}, first


def _memory(side: Side, fill: int) -> Tensors:
    # every storage as each replay finds it
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sizes = side.facts["storages"].items()
    memory = {n: torch.full((size,), fill, dtype=torch.uint8, device=device) for n, size in sizes}
    tensors = _arguments(side, memory)
    for name, data in side.contents.items():
        tensor, content = tensors[name], load(data)
        for dim, step in enumerate(tensor.stride()):
            if step == 0 and tensor.shape[dim]:  # expanded: one element is written for all
                tensor, content = tensor.narrow(dim, 0, 1), content.narrow(dim, 0, 1)
        tensor.copy_(content)
    return memory


def _arguments(side: Side, memory: Tensors) -> Tensors:
    found: Tensors = {}
    for name, one in side.facts["tensors"].items():
        place = memory[str(one["storage"])]
        empty = torch.empty(0, dtype=getattr(torch, one["dtype"]), device=place.device)
        found[name] = empty.set_(place.untyped_storage(), one["offset"], one["shape"], one["stride"])
    return found


def _left(side: Side, kernel: Remade, memory: Tensors, order: int) -> Tensors:
    copies = {number: storage.clone() for number, storage in memory.items()}
    tensors, (x, y, z) = _arguments(side, copies), side.facts["grid"]
    given = {**side.facts["values"], **tensors}
    if torch.cuda.is_available():
        kernel.function[x, y, z](**given, **kernel.constants, **kernel.options)
        torch.cuda.synchronize()
    else:
        with permuted(order) if order else contextlib.nullcontext():
            kernel.interpret(given, (x, y, z))
    return {name: tensors[name].contiguous() for name in side.outputs}


@dataclass(frozen=True, slots=True)
class _Difference:
    # of one tensor
    mask: torch.Tensor  # [elements] bool
    largest: float  # |difference| of two finite elements

    @classmethod
    def none(cls, tensor: torch.Tensor) -> _Difference:
        return cls(torch.zeros(tensor.numel(), dtype=torch.bool, device=tensor.device), 0.0)

    @classmethod
    def between(cls, one: torch.Tensor, other: torch.Tensor) -> _Difference:
        mask = (_bytes(one) != _bytes(other)).any(1)
        if one.dtype not in _NUMBERS or not bool(mask.any()):
            return cls(mask, 0.0)
        values = [tensor.reshape(-1)[mask].double() for tensor in (one, other)]
        apart = (values[0] - values[1]).abs()
        finite = apart[apart.isfinite()]
        return cls(mask, float(finite.max()) if len(finite) else 0.0)

    @property
    def any(self) -> bool:
        return bool(self.mask.any())

    def joined(self, other: _Difference) -> _Difference:
        return _Difference(self.mask | other.mask, max(self.largest, other.largest))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8).reshape(tensor.numel(), tensor.element_size())


def _told(found: Mapping[str, _Difference]) -> list[dict[str, Any]]:
    return [
        {
            "argument": name,
            "count": int(one.mask.sum()),
            "of": len(one.mask),
            "ranges": _ranges(one.mask.cpu().numpy()),
            "largest": one.largest,
        }
        for name, one in found.items()
        if one.any
    ]


def _ranges(mask: Any) -> Sequence[tuple[int, int]]:
    # the first ones, [first, behind)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)[:_RANGES]]
