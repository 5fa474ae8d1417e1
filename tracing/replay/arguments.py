"""The tensors of a recorded launch in memory, with their recorded layout and aliasing.

Each contiguous block is surrounded by separate pages, so that a kernel that reads out of bounds reads the
same bytes in each replay.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from tracing.errors import Problem
from tracing.model import Descriptor, KernelLaunch, TensorMeta
from tracing.record.outputs import load
from tracing.store.recorded_launch import Number, RecordedLaunch

_PAGE = 4096  # bytes: addresses are equal modulo this, and so are all promises of alignment to a compiler


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """The memory layout of one tensor."""

    storage: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]  # elements
    offset: int  # elements from the start of the storage


@dataclass(frozen=True, slots=True)
class LaunchLayout:
    """The memory layout of one launch's tensors."""

    storages: Mapping[int, int]  # bytes of each: what the tensors need, and a page on either side
    tensors: Mapping[str, TensorLayout]  # by argument


Tensors = dict[str, torch.Tensor]  # by argument
Memory = dict[int, torch.Tensor]  # [bytes] uint8, by storage


@dataclass(frozen=True, slots=True)
class ReplayInputs:
    """The inputs of a replay, in separate memory."""

    layout: LaunchLayout
    contents: Mapping[str, bytes]  # of arguments, as safetensors files
    values: Mapping[str, Number]  # of the arguments that are neither tensors nor constants
    names: Sequence[str]  # of all arguments, in order
    descriptors: Mapping[str, Descriptor]  # of the tensors that are passed by one

    @classmethod
    def of(cls, launch: RecordedLaunch, given: RecordedLaunch | None = None) -> ReplayInputs:
        """The arguments of a recorded launch.

        given -- the launch that provides the contents, with tensors of the same names, shapes and dtypes;
                 None: itself

        Raises Problem for contents that the run lacks, for a value that is not a number, and for addresses.
        """
        _require_no_addresses(launch)
        names = [arg.name for arg in launch.launch.args]
        contents = (given or launch).contents()
        return cls(layout_of(launch.launch), contents, launch.values, names, launch.descriptors)

    def memory(self, device: str, fill: int = 0) -> Memory:
        """New storages for one execution, filled with the contents; every other byte is `fill`."""
        return memory_of(self.layout, self.contents, fill, device)

    def tensors(self, memory: Memory) -> Tensors:
        """The tensors of the launch, over storages that `memory` gave, or over copies of them."""
        return tensors_over(self.layout, memory)

    def arguments(self, tensors: Tensors) -> dict[str, torch.Tensor | TensorDescriptor | Number]:
        """All arguments but the constants, in the order of the launch."""
        described = {
            name: TensorDescriptor(tensors[name], **described_by(one))
            for name, one in self.descriptors.items()
        }
        known = {**self.values, **tensors, **described}
        return {name: known[name] for name in self.names if name in known}


def described_by(one: Descriptor) -> dict[str, Any]:
    """The arguments of a `TensorDescriptor` after its tensor."""
    facts = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in msgspec.structs.asdict(one).items()
    }
    if not one.round_f32_to_tf32:  # which Triton 3.6 does not know
        del facts["round_f32_to_tf32"]
    return facts


def _require_no_addresses(launch: RecordedLaunch) -> None:
    pointing = [arg.name for arg in launch.launch.args if arg.addresses]
    if pointing:
        index = launch.launch.index
        raise Problem(
            f"launch {index} reads or writes memory through addresses in {', '.join(pointing)}: "
            "the run does not have that memory",
            f"what the launch wrote: `tracing show {shlex.quote(str(launch.run.path))} --launch {index}`",
        )


def layout_of(launch: KernelLaunch) -> LaunchLayout:
    """The recorded memory layout of a launch's tensors, without distant parts of their storages."""
    return layout_of_tensors(
        {
            arg.name: (arg.tensor, -1 - position if arg.storage is None else arg.storage)
            for position, arg in enumerate(launch.args)
            if arg.tensor is not None
        }
    )


def layout_of_tensors(recorded: Mapping[str, tuple[TensorMeta, int]]) -> LaunchLayout:
    """The memory layout of some tensors, by name, each with the number of its storage."""
    extents: dict[int, tuple[int, int]] = {}
    tensors: dict[str, TensorLayout] = {}
    for name, (meta, storage) in recorded.items():
        one = TensorLayout(storage, getattr(torch, meta.dtype), meta.shape, meta.stride, meta.offset)
        start, stop = _extent(one)
        known = extents.get(storage, (start, stop))
        extents[storage] = min(start, known[0]), max(stop, known[1])
        tensors[name] = one
    bases = {storage: (start // _PAGE - 1) * _PAGE for storage, (start, _) in extents.items()}
    return LaunchLayout(
        {storage: stop + _PAGE - bases[storage] for storage, (_, stop) in extents.items()},
        {name: _moved(one, bases[one.storage]) for name, one in tensors.items()},
    )


def memory_of(layout: LaunchLayout, contents: Mapping[str, bytes], fill: int, device: str) -> Memory:
    """Allocate the storages of a launch.

    contents -- of arguments, as safetensors files
    fill     -- every other byte
    """
    memory = {
        storage: torch.full((size,), fill, dtype=torch.uint8, device=device)
        for storage, size in layout.storages.items()
    }
    tensors = tensors_over(layout, memory)
    for name, data in contents.items():
        put(tensors[name], load(data))
    return memory


def put(tensor: torch.Tensor, content: torch.Tensor) -> None:
    """Copy a content of the same shape and dtype into a tensor of a launch."""
    for dim, step in enumerate(tensor.stride()):
        if step == 0 and tensor.shape[dim]:  # expanded: one element is written for all
            tensor, content = tensor.narrow(dim, 0, 1), content.narrow(dim, 0, 1)
    if tensor.element_size() == 1:  # torch does not copy integers of fewer than 8 bits
        tensor, content = tensor.view(torch.uint8), content.view(torch.uint8)
    tensor.copy_(content)


def tensors_over(layout: LaunchLayout, memory: Memory) -> Tensors:
    """The tensors of a launch, over storages that `memory_of` gave, or over copies of them."""
    tensors: Tensors = {}
    for name, one in layout.tensors.items():
        storage = memory[one.storage]
        empty = torch.empty(0, dtype=one.dtype, device=storage.device)
        tensors[name] = empty.set_(storage.untyped_storage(), one.offset, one.shape, one.stride)
    return tensors


def copied(memory: Memory) -> Memory:
    """Storages of the same bytes."""
    return {storage: content.clone() for storage, content in memory.items()}


def _extent(one: TensorLayout) -> tuple[int, int]:
    # the bytes START:STOP of its storage that contain the elements
    first = one.offset * one.dtype.itemsize
    if 0 in one.shape:
        return first, first
    last = sum((n - 1) * stride for n, stride in zip(one.shape, one.stride, strict=True))
    return first, first + (last + 1) * one.dtype.itemsize


def _moved(one: TensorLayout, base: int) -> TensorLayout:
    offset = one.offset - base // one.dtype.itemsize
    return TensorLayout(one.storage, one.dtype, one.shape, one.stride, offset)
