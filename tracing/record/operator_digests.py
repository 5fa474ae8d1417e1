"""Takes the digests of what operators read and wrote: on the host at once, on a GPU in stream order.

Records are written in the order of the operators, when the digests of all earlier ones have arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from tracing.digest.columns import Columns, Digested
from tracing.digest.gpu import Sides, StreamDigests
from tracing.digest.host import digest
from tracing.launch import hooks
from tracing.launch.coverage import NO_GRAPHS
from tracing.model import Digest, OperatorDigests
from tracing.operators.effects import Effect
from tracing.record.launches.digested_tensors import (
    DigestedTensors,
    calls_at,
    copied_calls,
    digested_tensors,
)
from tracing.store import RunWriter
from tracing.upstream.torch.cuda_graphs import is_capturing
from tracing.upstream.torch.dispatch_modes import dispatch_disabled
from tracing.upstream.torch.streams import current_handle

NOT_TAKEN = Digest("")
_NO_FACTS = np.empty((0, 3), np.int64)
_KNOWN = 1 << 12  # layouts of tensors that are remembered

Arriving: TypeAlias = list[Digest | None]  # digests of tensors; None: a GPU computes it


@dataclass(slots=True)
class _Expected:
    operator: int
    before: Arriving
    after: Arriving
    seen: Callable[[Sequence[Digest]], None] | None  # receives what it wrote

    def arrived(self) -> bool:
        return None not in self.before and None not in self.after


class OperatorDigestQueue:
    """The digests of operators; never waits for a device before `close`."""

    def __init__(self, writer: RunWriter, not_covered: Callable[[str, str], None]) -> None:
        self._writer, self._not_covered = writer, not_covered
        self._streams: dict[tuple[torch.device, int], StreamDigests] = {}
        self._sides: dict[tuple[Any, ...], DigestedTensors] = {}
        self._computed: dict[int, Arriving] = {}  # on GPUs, by number
        self._count = 0
        self._expected: deque[_Expected] = deque()

    def take(self, effect: Effect, tensors: Sequence[torch.Tensor]) -> Arriving:
        """The digests of tensors as they are now; those on a GPU arrive later in the returned list.

        Call it under the lock of the recording.
        """
        taken: Arriving = []
        on_gpus: dict[torch.device, dict[int, torch.Tensor]] = {}
        with dispatch_disabled(), hooks.hidden():
            for i, tensor in enumerate(tensors):
                if tensor.is_cuda and self._is_taken(effect, tensor):
                    on_gpus.setdefault(tensor.device, {})[i] = tensor
                    taken.append(None)
                else:
                    taken.append(NOT_TAKEN if tensor.is_cuda else self._on_host(effect, tensor))
            for device, some in on_gpus.items():
                self._on_gpu(effect, device, some, taken)
        return taken

    def expect(
        self,
        operator: int,
        before: Arriving,
        after: Arriving,
        seen: Callable[[Sequence[Digest]], None] | None = None,
    ) -> None:
        """Write the digests of an operator when they have arrived; operators come in their order.

        seen -- called then with the digests of what it wrote
        """
        self._expected.append(_Expected(operator, before, after, seen))
        self._write()

    def hand_over(self, *, wait: bool) -> None:
        """Let the digests so far arrive soon; wait: first wait for those of earlier calls."""
        for stream in self._streams.values():
            stream.hand_over(wait=wait)

    def close(self) -> None:
        """Wait for all digests, and write them."""
        for stream in self._streams.values():
            stream.drain()
        for one in self._expected:  # a digest that failed never arrives
            one.before = [NOT_TAKEN if digest is None else digest for digest in one.before]
            one.after = [NOT_TAKEN if digest is None else digest for digest in one.after]
        self._write()

    def _is_taken(self, effect: Effect, tensor: torch.Tensor) -> bool:
        if _may_run(effect):
            return False
        if is_capturing():
            self._not_covered("digests of operators captured into a CUDA graph", NO_GRAPHS)
            return False
        if tensor.numel() and not tensor.untyped_storage().nbytes():  # as FSDP frees that of parameters
            self._left_out(effect, "its storage was freed")
            return False
        return True

    def _on_host(self, effect: Effect, tensor: torch.Tensor) -> Digest:
        if _may_run(effect):
            return NOT_TAKEN
        try:
            return digest(tensor)
        except (RuntimeError, NotImplementedError, TypeError) as error:  # a quantized tensor
            self._left_out(effect, str(error).splitlines()[0])
            return NOT_TAKEN

    def _left_out(self, effect: Effect, reason: str) -> None:
        self._not_covered(f"the bits of a tensor of {effect.name} ({reason})", "")

    def _on_gpu(
        self, effect: Effect, device: torch.device, tensors: dict[int, torch.Tensor], taken: Arriving
    ) -> None:
        try:
            side = self._side(device, tensors)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            self._left_out(effect, str(error).splitlines()[0])
            for i in tensors:
                taken[i] = NOT_TAKEN
            return
        handle = current_handle(device.index or 0)
        stream = self._streams.get((device, handle))
        if stream is None:
            stream = self._streams[device, handle] = StreamDigests(device, handle, self._arrived)
        batch, slot = stream.reserve(len(tensors))
        ready = calls_at(side, [tensor.data_ptr() for tensor in tensors.values()])
        if ready is None:
            ready = copied_calls(side, [tensors[i] for i in side.positions], device, handle)
        stream.add(batch, slot, ready)
        self._computed[self._count] = taken
        stream.ended(batch, (self._count, slot, Sides(side.positions, (), (side.facts, _NO_FACTS))))
        self._count += 1

    def _side(self, device: torch.device, tensors: dict[int, torch.Tensor]) -> DigestedTensors:
        key = (
            device,
            *((i, one.shape, one.stride(), one.dtype, one.is_conj()) for i, one in tensors.items()),
        )
        side = self._sides.get(key)
        if side is None:
            if len(self._sides) >= _KNOWN:
                self._sides.clear()
            side = self._sides[key] = digested_tensors(tensors, list(tensors), device, wanted=True)
        return side

    def _arrived(self, computed: Sequence[Digested]) -> None:
        columns: Columns | None = None
        digests: list[Digest] = []
        for one in computed:
            if one.columns is not columns:
                columns, digests = one.columns, one.columns.digests()
            taken = self._computed.pop(one.launch)
            for position, bits in zip(one.before, digests[one.first : one.stop], strict=True):
                taken[position] = bits
        self._write()

    def _write(self) -> None:
        while self._expected and self._expected[0].arrived():
            one = self._expected.popleft()
            before, after = (tuple(filter(None, side)) for side in (one.before, one.after))
            self._writer.append(OperatorDigests(one.operator, before, after))
            if one.seen is not None:
                one.seen(after)


def _may_run(effect: Effect) -> bool:
    # it may not have ended: the bits are its landmark's
    return effect.collective and effect.name.startswith("_c10d_functional::")
