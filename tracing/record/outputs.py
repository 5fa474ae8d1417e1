"""Keeps the tensors before and after each launch, under a budget of memory and of disk.

Clones stay on their device until the memory budget is used up; then they are written to the run as
safetensors, one file per tensor, and one record names the launch and argument. Keeping a tensor waits for
nothing; writing clones waits for the device. A tensor that cannot be kept is reported; no exception is
raised.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import safetensors.torch
import torch

from tracing.digest.spare_memory import spare_memory
from tracing.launch.coverage import NO_GRAPHS
from tracing.model import KEPT_IN_MEMORY, KEPT_ON_DISK, Blob, KeptTensor, Record
from tracing.store import RunWriter
from tracing.store.segments import Segments
from tracing.upstream.torch.constructors import empty
from tracing.upstream.torch.cuda_graphs import has_graph_trees
from tracing.upstream.torch.dispatch_modes import dispatch_disabled

# dtypes that safetensors 0.7 and later stores and loads; of another the bytes are stored
_STORED = {
    torch.bool,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
}


@dataclass(frozen=True, slots=True)
class _Held:
    name: str  # text that names the tensor
    record: Callable[[Blob], Record]  # makes the record that links the tensor to its blob
    tensor: torch.Tensor
    dtype: torch.dtype  # of the argument; `tensor` may be its bytes


@dataclass(frozen=True, slots=True)
class Keep:
    """The tensors to keep, and their budgets."""

    inputs: bool = False  # what a launch reads, too
    memory: int = KEPT_IN_MEMORY  # bytes
    disk: int = KEPT_ON_DISK
    spill: Literal["oldest", "largest"] = "oldest"


def keeper_of(
    keep: Keep | None, writer: RunWriter, not_covered: Callable[[str, str], None]
) -> OutputKeeper | None:
    """Keeps tensors in the run of `writer`; None: none are to be kept."""
    if keep is None:
        return None
    return OutputKeeper(writer, not_covered, memory=keep.memory, disk=keep.disk, spill=keep.spill)


class OutputKeeper:
    """The tensors of a run that are to be kept; may be called from several threads."""

    def __init__(
        self,
        writer: RunWriter,
        not_covered: Callable[[str, str], None],
        *,
        memory: int = KEPT_IN_MEMORY,
        disk: int = KEPT_ON_DISK,
        spill: Literal["oldest", "largest"] = "oldest",
    ) -> None:
        """Keep tensors in the run of `writer`.

        not_covered -- receives the tensors that are not kept, and the setting that would keep them
        memory      -- limit for clones in memory, over all devices; beyond it, clones are written to disk
                       until half of it is free
        disk        -- limit for files, before compression; equal files count once
        spill       -- which clones are written first
        """
        self._writer = writer
        self._not_covered = not_covered
        self._memory = memory
        self._disk = disk
        self._largest_first = spill == "largest"
        self._lock = threading.Lock()  # CUDA's backward launches from autograd's own threads
        self._clones: list[_Held] = []
        self._bytes = 0
        self._written: set[Blob] = set()
        self._on_disk = 0
        self._segments = writer.segments
        self._stopped = False

    @property
    def held(self) -> int:
        """Bytes of the clones that are in memory now."""
        return self._bytes

    def keep(
        self, launch: int, position: int, side: Literal["before", "after"], tensor: torch.Tensor
    ) -> None:
        """Clone an argument of a launch; see `keep_as`."""
        name = f"launch {launch}, argument {position}, {side}"
        self.keep_as(name, partial(KeptTensor, launch, position, side), tensor)

    def keep_as(self, name: str, record: Callable[[Blob], Record], tensor: torch.Tensor) -> None:
        """Clone a tensor on its own device, after the work of the current stream there.

        name   -- text that names the tensor
        record -- makes the record from the blob
        tensor -- [*] any dtype, strides and device

        Costs a copy on the device; waits for the device only when the memory budget is used up, or if the
        tensor is larger than it. A quantized tensor is kept as its integers.
        """
        with self._lock, dispatch_disabled():
            if self._stopped:
                return
            if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
                self._not_covered("the content of tensors of launches captured into a CUDA graph", NO_GRAPHS)
                return
            try:
                plain = tensor.int_repr() if tensor.is_quantized else tensor.detach()
                self._keep(_Held(name, record, _copyable(plain), plain.dtype))
            except RuntimeError as error:
                self._leave_out(name, error)

    def close(self) -> None:
        """Write all clones that are still in memory; synchronises the device."""
        with self._lock, dispatch_disabled():
            self._spill(-1)

    def _keep(self, held: _Held) -> None:
        if held.tensor.nbytes > self._memory:
            self._write(held)
            return
        try:
            copy = clone(held.tensor)
        except RuntimeError as error:
            if not _out_of_memory(error):
                raise
            self._spill(-1)
            copy = clone(held.tensor)
        self._clones.append(_Held(held.name, held.record, copy, held.dtype))
        self._bytes += copy.nbytes
        if self._bytes > self._memory:
            self._spill(self._memory // 2)

    def _spill(self, down_to: int) -> None:
        # -1: everything, also what has no bytes
        if self._largest_first:
            self._clones.sort(key=lambda held: -held.tensor.nbytes)  # stable: among equals the oldest
        clones = deque(self._clones)
        self._clones.clear()
        while clones and (self._bytes > down_to or self._stopped):
            held = clones.popleft()
            self._bytes -= held.tensor.nbytes
            self._write(held)
        self._clones.extend(clones)

    def _write(self, held: _Held) -> None:
        if self._stopped:
            return
        try:
            data = dump(held.tensor, held.dtype)
        except (RuntimeError, MemoryError) as error:  # the device failed, or the host has no memory left
            self._leave_out(held.name, error)
            return
        if self._segments is not None:
            self._append_to_segment(held, data, self._segments)
            return
        if self._on_disk + len(data) > self._disk:
            what = f"tensors beyond {self._disk} bytes on disk, from {held.name} on"
            self._stop(what, "--keep-disk BYTES")
            return
        try:
            self._append(held, data)
        except OSError as error:  # most often a full disk
            self._stop(f"tensors from {held.name} on: {error.strerror}", "--runs DIR")

    def _append(self, held: _Held, data: bytes) -> None:
        blob = self._writer.append_with_blob(data, held.record)
        if blob not in self._written:
            self._written.add(blob)
            self._on_disk += len(data)

    def _append_to_segment(self, held: _Held, data: bytes, segments: Segments) -> None:
        if segments.blob_bytes + len(data) > self._disk:
            self._not_covered(f"the content of some tensors, beyond {self._disk} bytes", "--keep-disk BYTES")
        elif not segments.has_room(len(data)):
            self._not_covered("the content of some tensors, which --disk has no room for", "a larger --disk")
        else:
            self._writer.append_with_blob(data, held.record)

    def _leave_out(self, name: str, error: Exception) -> None:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        setting = "--keep-memory" if _out_of_memory(error) else ""
        self._not_covered(f"the content of tensors of {name.partition(',')[0]} ({reason})", setting)

    def _stop(self, what: str, setting: str) -> None:
        self._stopped = True
        with suppress(OSError):  # a disk that is full may have no room for this line either
            self._not_covered(f"the content of {what}", setting)


def load(data: bytes) -> torch.Tensor:
    """The tensor in a file that a `KeptTensor` names, on the CPU."""
    stored = safetensors.torch.load(data)["tensor"]
    length = int.from_bytes(data[:8], "little")  # of the header: the library gives no metadata for bytes
    metadata: dict[str, Any] = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    if "dtype" not in metadata:
        return stored
    return stored.view(getattr(torch, metadata["dtype"])).reshape(json.loads(metadata["shape"]))


def dump(tensor: torch.Tensor, dtype: torch.dtype) -> bytes:
    """A tensor as such a file; dtype: the tensor's, or what its bytes mean."""
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)  # the clone may be of another stream than the current one
    plain = tensor.resolve_conj().resolve_neg().cpu().contiguous()
    if dtype in _STORED:
        return safetensors.torch.save({"tensor": plain})
    metadata = {"dtype": str(dtype).removeprefix("torch."), "shape": json.dumps(list(plain.shape))}
    return safetensors.torch.save({"tensor": plain.reshape(-1).view(torch.uint8)}, metadata)


def _copyable(tensor: torch.Tensor) -> torch.Tensor:
    # torch does not copy integers of fewer than 8 bits
    if tensor.dtype not in _STORED and tensor.element_size() == 1:
        return tensor.view(torch.uint8)
    return tensor


def clone(tensor: torch.Tensor) -> torch.Tensor:
    """[*] a contiguous clone, in no CUDA graph's memory: graphs account for all that is allocated there."""
    plain = tensor.resolve_conj().resolve_neg()
    if not (plain.is_cuda and has_graph_trees(plain.get_device())):
        return plain.clone(memory_format=torch.contiguous_format)
    shape, dtype = plain.shape, plain.dtype
    memory = spare_memory(plain.device)
    own: torch.Tensor = memory.outside(lambda device: empty(shape, dtype=dtype, device=device))
    return own.copy_(plain)


def _out_of_memory(error: Exception) -> bool:
    # the CPU's allocator has no exception of its own
    texts = ("out of memory", "can't allocate memory")
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or any(
        text in str(error) for text in texts
    )
