"""Takes the digests of what operators read and wrote: on the host at once, on a GPU in stream order.

Records are written in the order of the operators, when the digests of all earlier ones have arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from tracing.digest.captured import CapturedDigests
from tracing.digest.columns import DigestedLaunches
from tracing.digest.gpu import SLOTS, Sides, digest_objects
from tracing.digest.host import digest
from tracing.digest.spare_memory import OutOfSpareMemoryError
from tracing.digest.streams import DigestStreams
from tracing.launch import hooks
from tracing.launch.coverage import EARLIER, WARM_UP
from tracing.launch.hidden_computation import HiddenComputation
from tracing.model import Digest, OperatorDigests
from tracing.operators.effects import Effect
from tracing.record.launches.digest_batches import DigestBatches
from tracing.record.launches.digested_tensors import (
    DigestedTensors,
    calls_at,
    copied_calls,
    digested_tensors,
)
from tracing.store import RunWriter
from tracing.upstream.torch.dispatch_modes import dispatch_disabled
from tracing.upstream.torch.streams import current_device, current_handle

NOT_TAKEN = Digest("")
_NO_FACTS = np.empty((0, 3), np.int64)
_KNOWN = 1 << 12  # layouts of tensors that are remembered

Arriving: TypeAlias = list[Digest | None]  # digests of tensors; None: a GPU computes it
# an operator, the digests before and after it, and what receives those of what it wrote
_Expected: TypeAlias = tuple[int, Arriving, Arriving, Callable[[Sequence[Digest]], None] | None]


class Captured(NamedTuple):
    """The digests of one side of an operator that a CUDA graph captures."""

    digests: Arriving  # None: each replay computes it
    rows: Sequence[int]  # of the graph's CapturedDigests


class OperatorDigestQueue(DigestBatches):
    """The digests of operators; never waits for a device before `close`.

    The compiled form, OperatorDigests in tracing/native/operator_digests.h, uses the public attributes.
    """

    device_type = "cuda"  # of the tensors that a GPU reads
    current_device: Callable[[], int] = staticmethod(current_device)
    current_stream: Callable[[int], int] = staticmethod(current_handle)

    def __init__(self, writer: RunWriter, not_covered: Callable[[str, str], None]) -> None:
        self._writer, self._not_covered = writer, not_covered
        self.streams = DigestStreams(self.arrived)
        self._sides: dict[tuple[Any, ...], DigestedTensors] = {}
        self.computed: dict[int, Arriving] = {}  # on GPUs, by number
        self.count = 0
        self.expected: deque[_Expected] = deque()
        # the compiled form replaces it; it returns None for tensors that only Python can read
        self.compiled_digest: Callable[[torch.Tensor], Digest | None] = lambda tensor: None

    def take(self, effect: Effect, tensors: Sequence[torch.Tensor]) -> Arriving:
        """The digests of tensors as they are now; those on a GPU arrive later in the returned list.

        Call it under the lock of the recording.
        """
        with dispatch_disabled(), hooks.hidden():
            taken, parts = self._divided(effect, tensors, self._on_host)
            unseen = bool(parts) and self.capturing()
            if unseen:
                what = "digests of operators captured into a CUDA graph that the recorder did not see begin"
                self._not_covered(what, EARLIER)
            for device, part in parts:
                if unseen:
                    _miss(taken, part)
                else:
                    self._on_gpu(effect, device, part, taken)
        return taken

    def capture(self, effect: Effect, tensors: Sequence[torch.Tensor], graph: CapturedDigests) -> Captured:
        """Capture the digests of tensors into a graph of this thread, under the lock of the recording."""
        rows: list[int] = []
        with dispatch_disabled(), hooks.hidden():
            taken, parts = self._divided(effect, tensors, self._on_host_in_graph)
            for device, part in parts:
                row = self._captured(effect, device, part, graph)
                if row is not None:
                    rows.append(row)
                else:
                    _miss(taken, part)
        return Captured(taken, rows)

    def replayed(self, side: Captured, numbers: list[int | None]) -> Arriving:
        """The digests of one side in a replay that begins; they arrive later in the returned list.

        numbers -- by row of the graph: receives the numbers under which they arrive
        """
        taken = list(side.digests)
        for row in side.rows:
            numbers[row] = self._numbered(taken)
        return taken

    def _divided(
        self,
        effect: Effect,
        tensors: Sequence[torch.Tensor],
        on_host: Callable[[Effect, torch.Tensor], Digest],
    ) -> tuple[Arriving, list[tuple[torch.device, dict[int, torch.Tensor]]]]:
        # the digests of those on the host, and those on GPUs by position, in parts that fit a batch
        taken: Arriving = []
        on_gpus: dict[torch.device, dict[int, torch.Tensor]] = {}
        for i, tensor in enumerate(tensors):
            on_gpu = tensor.device.type == self.device_type
            if on_gpu and self._is_taken(effect, tensor):
                on_gpus.setdefault(tensor.device, {})[i] = tensor
                taken.append(None)
            else:
                taken.append(NOT_TAKEN if on_gpu else on_host(effect, tensor))
        return taken, [(device, part) for device, some in on_gpus.items() for part in _parts(some)]

    def learned(
        self, effect: Effect, tensors: Sequence[torch.Tensor]
    ) -> tuple[Arriving, tuple[Any, ...] | None]:
        """`take` for the compiled form, and what it needs to take digests of such tensors itself.

        None: it cannot. See DigestPlan in tracing/native/operator_digests.h.
        """
        with HiddenComputation():
            taken = self.take(effect, tensors)
            return taken, self._plan(tensors) if all(digest is None for digest in taken) else None

    def _plan(self, tensors: Sequence[torch.Tensor]) -> tuple[Any, ...] | None:
        # of tensors whose digests were taken on GPUs
        device = tensors[0].device
        apart = len(tensors) > SLOTS or any(tensor.device != device for tensor in tensors)
        if apart or torch.version.hip is not None:
            return None
        side = self._side(device, dict(enumerate(tensors)))
        ready = calls_at(side, [tensor.data_ptr() for tensor in tensors])
        if ready is None:
            return None
        stream = self.streams.on(device, self.current_stream(device.index or 0))
        return side, side.positions, side.misaligned, stream.plan(ready, (), _sides(side))

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
        self.expected.append((operator, before, after, seen))
        self._write()

    def write_hidden(self) -> None:
        """Write the digests that have arrived, in the middle of a program."""
        with HiddenComputation():
            self._write()

    def close(self) -> None:
        """Wait for all digests, and write them."""
        self.streams.drain()
        for _, *sides, _ in self.expected:  # a digest that failed never arrives
            for side in sides:
                side[:] = [NOT_TAKEN if digest is None else digest for digest in side]
        self._write()

    def _is_taken(self, effect: Effect, tensor: torch.Tensor) -> bool:
        if _may_run(effect):
            return False
        if tensor.numel() and not tensor.untyped_storage().nbytes():  # as FSDP frees that of parameters
            self._left_out(effect, "its storage was freed")
            return False
        return True

    def _on_host(self, effect: Effect, tensor: torch.Tensor) -> Digest:
        if _may_run(effect):
            return NOT_TAKEN
        try:
            return self.compiled_digest(tensor) or digest(tensor)
        except (RuntimeError, NotImplementedError, TypeError) as error:  # a quantized tensor
            self._left_out(effect, str(error).splitlines()[0])
            return NOT_TAKEN

    def _on_host_in_graph(self, effect: Effect, tensor: torch.Tensor) -> Digest:
        self._left_out(effect, "it is on the host, and a CUDA graph reads or writes it later")
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
            _miss(taken, tensors)
            return
        handle = self.current_stream(device.index or 0)
        stream = self.streams.on(device, handle)
        batch, slot = stream.reserve(len(tensors))
        ready = calls_at(side, [tensor.data_ptr() for tensor in tensors.values()])
        if ready is None:
            ready = copied_calls(side, [tensors[i] for i in side.positions], device, handle)
        stream.add(batch, slot, ready)
        stream.ended(batch, self._numbered(taken), slot, _sides(side))

    def _captured(
        self,
        effect: Effect,
        device: torch.device,
        tensors: dict[int, torch.Tensor],
        graph: CapturedDigests,
    ) -> int | None:
        # the row of the graph; None: they are not covered
        try:
            if device != graph.device:
                raise RuntimeError(f"it is on {device}, and the graph on {graph.device}")
            side = self._side(device, tensors)
            address, slot = graph.reserve(len(tensors))
            stream = self.current_stream(device.index or 0)
            ready = calls_at(side, [tensor.data_ptr() for tensor in tensors.values()])
            if ready is None:
                ready = copied_calls(side, [tensors[i] for i in side.positions], device, stream)
            graph.add(address, stream, ready)
        except OutOfSpareMemoryError as missing:
            what = f"digests of operators in a CUDA graph ({missing} was not there before the capture)"
            self._not_covered(what, WARM_UP)
            return None
        except (RuntimeError, NotImplementedError, TypeError) as error:
            self._left_out(effect, str(error).splitlines()[0])
            return None
        return graph.ended(graph.rows, slot, _sides(side))

    def _numbered(self, taken: Arriving) -> int:
        self.computed[self.count] = taken
        self.count += 1
        return self.count - 1

    def _side(self, device: torch.device, tensors: dict[int, torch.Tensor]) -> DigestedTensors:
        key = (
            device,
            *(
                (i, one.shape, one.stride(), one.dtype, one.is_conj(), one.is_neg())
                for i, one in tensors.items()
            ),
        )
        side = self._sides.get(key)
        if side is None:
            if len(self._sides) >= _KNOWN:
                self._sides.clear()
            side = digested_tensors(tensors, list(tensors), device, wanted=True)
            if side.tables:  # else there was no memory for them during a capture
                self._sides[key] = side
        return side

    def arrived(self, computed: DigestedLaunches) -> None:
        """Digests were computed on a GPU."""
        digests = digest_objects(computed.columns)
        for launch, first, sides in zip(computed.launches, computed.firsts, computed.sides, strict=True):
            if launch is not None:
                taken = self.computed.pop(launch)
                for i, position in enumerate(sides.before, first):
                    taken[position] = digests[i]
        self._write()

    def _write(self) -> None:
        records: list[OperatorDigests] = []
        seen: list[Callable[[], None]] = []
        while self.expected and _arrived(self.expected[0]):
            operator, *sides, watch = self.expected.popleft()
            before, after = (tuple(filter(None, side)) for side in sides)
            records.append(OperatorDigests(operator, before, after))
            if watch is not None:
                seen.append(partial(watch, after))
        self._writer.extend(records)
        for call in seen:
            call()


def _parts(tensors: dict[int, torch.Tensor]) -> list[dict[int, torch.Tensor]]:
    # each fits a batch: a fused optimizer reads all parameters, gradients and moments at once
    positions = list(tensors)
    parts = [positions[start : start + SLOTS] for start in range(0, len(positions), SLOTS)]
    return [{i: tensors[i] for i in part} for part in parts]


def _arrived(one: _Expected) -> bool:
    _, before, after, _ = one
    return None not in before and None not in after


def _miss(taken: Arriving, tensors: dict[int, torch.Tensor]) -> None:
    for i in tensors:
        taken[i] = NOT_TAKEN


def _sides(side: DigestedTensors) -> Sides:
    return Sides(side.positions, (), (side.facts, _NO_FACTS))


def _may_run(effect: Effect) -> bool:
    # it may not have ended: the bits are its landmark's
    return effect.collective and effect.name.startswith("_c10d_functional::")
