"""The tensor contents that a run kept: arguments of launches, inputs and outputs of graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import torch

from tracing.model import Blob, GraphTensor, KeptTensor, KernelArg, KernelLaunch, TensorMeta
from tracing.record.outputs import load
from tracing.store import Run

_CACHED = 64 << 20  # bytes of a tensor that stays in memory


@dataclass(frozen=True, slots=True)
class Content:
    """The contents of one tensor at one time."""

    blob: Blob
    meta: TensorMeta | None = None  # of a launch's argument
    passed: TensorMeta | None = None  # with which its memory was passed, if another buffer's name has `meta`
    shape: tuple[int, ...] | None = None  # the shape to read it with; None: its own


@dataclass(slots=True)
class Contents:
    """The tensors that one process kept."""

    run: Run
    arguments: Mapping[tuple[int, int, str], Blob]  # by launch, position, side
    graphs: Mapping[tuple[int, int, str], Blob]  # by call, position, side
    device: torch.device
    _of_calls: Mapping[int, Sequence[tuple[str, Blob]]]  # of graphs: side and content
    _loaded: dict[Blob, torch.Tensor] = field(default_factory=dict)
    _bytes: int = 0

    @classmethod
    def of(cls, run: Run, process: str, device: torch.device) -> Contents:
        """Load the contents that one process of a run kept.

        device -- the device for loaded tensors
        """
        arguments = run.view(process, KeptTensor, KeptTensor)
        graphs = [*run.view(process, GraphTensor, GraphTensor)]
        of_calls: dict[int, list[tuple[str, Blob]]] = {}
        for one in graphs:
            of_calls.setdefault(one.call, []).append((one.side, one.blob))
        return cls(
            run,
            {(one.launch, one.position, one.side): one.blob for one in arguments},
            {(one.call, one.position, one.side): one.blob for one in graphs},
            device,
            of_calls,
        )

    def argument(
        self, launch: KernelLaunch, position: int, argument: KernelArg, side: Literal["before", "after"]
    ) -> Content | None:
        """The contents of an argument before or after a launch; None: not kept."""
        blob = self.arguments.get((launch.index, position, side))
        return None if blob is None else Content(blob, argument.tensor)

    def of_graph(self, call: int, position: int, side: str) -> Content | None:
        """The contents of an input or output of a graph call; None: not kept."""
        blob = self.graphs.get((call, position, side))
        return None if blob is None else Content(blob)

    def of_calls(self, calls: Iterable[int], *sides: str) -> set[Blob]:
        """All contents of some graph calls, on these sides or on any."""
        kept = (one for call in calls for one in self._of_calls.get(call, ()))
        return {blob for side, blob in kept if not sides or side in sides}

    def tensor(self, content: Content) -> torch.Tensor:
        """[*] the tensor, with the strides of the argument; not to be changed."""
        plain = self._loaded.get(content.blob)
        if plain is None:
            plain = load(self.run.bytes(content.blob)).to(self.device)
            self._bytes += plain.nbytes
            if self._bytes > _CACHED:
                self._loaded.clear()
                self._bytes = plain.nbytes
            self._loaded[content.blob] = plain
        if content.shape is not None:
            return plain.reshape(content.shape)
        if content.passed is not None and content.meta is not None:
            memory = _laid_out(plain, content.passed.stride)
            return memory.as_strided(content.meta.shape, content.meta.stride)
        return plain if content.meta is None else _laid_out(plain, content.meta.stride)

    def reshaped(self, content: Content, shape: tuple[int, ...]) -> Content:
        """A content as the tensor of another shape; its memory is contiguous."""
        return Content(content.blob, content.meta, shape=shape)

    def renamed(self, content: Content, meta: TensorMeta) -> Content:
        """The memory of a content as a tensor of another layout; the same content if one has gaps."""
        passed = content.meta
        if passed is None or (passed.shape, passed.stride) == (meta.shape, meta.stride):
            return content
        if not (_dense(passed) and _dense(meta) and prod(passed.shape) == prod(meta.shape)):
            return content
        return Content(content.blob, meta, passed)

    def same(self, a: Content, b: Content) -> bool | None:
        """Whether two contents have the same bits, in logical order; None: they are not comparable."""
        if a.blob == b.blob:
            return True
        one, other = self.tensor(a), self.tensor(b)
        if one.dtype != other.dtype or one.numel() != other.numel():
            return None
        if one.shape != other.shape and not (one.is_contiguous() and other.is_contiguous()):
            return None
        return bool(torch.equal(_bytes(one), _bytes(other)))


def device_of(run: Run) -> torch.device:
    """The type of device of a recording, if this machine has one: libraries differ between devices."""
    virtual = run.info.environment.virtual
    return torch.device("cuda" if torch.cuda.is_available() and not virtual else "cpu")


def _dense(meta: TensorMeta) -> bool:
    # whether a tensor has each element of its memory once
    size = 1
    for stride, count in sorted(zip(meta.stride, meta.shape, strict=True)):
        if count > 1 and stride != size:
            return False
        size *= count
    return True


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _laid_out(plain: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    if plain.stride() == stride or 0 in stride or len(stride) != plain.dim() or 0 in plain.shape:
        return plain
    made: Any = torch.empty_strided(plain.shape, stride, dtype=plain.dtype, device=plain.device)
    result: torch.Tensor = made.copy_(plain)
    return result
