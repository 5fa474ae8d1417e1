"""Digests inside of CUDA graphs: the digest kernels are captured with the launches of the program.

Each replay of the graph fills the slots that were captured. They are copied to pinned memory in the order of
the stream, read when the copy has ended, and set to zero for the next replay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from tracing.digest.columns import DigestedLaunches
from tracing.digest.gpu import Rows, Sides, digested
from tracing.digest.kernel import FIELDS
from tracing.digest.kernel_launches import all_loaded, launch_digests, launch_into_slots
from tracing.digest.spare_memory import OutOfSpareMemoryError, Region, SpareMemory
from tracing.digest.tables import Call, merged
from tracing.upstream.torch.constructors import empty
from tracing.upstream.torch.streams import current_handle


class _Replay(NamedTuple):
    launches: Sequence[int | None]  # numbers of the launches that have digests
    host: torch.Tensor  # [n, FIELDS] pinned
    copied: Any  # a torch.cuda.Event after the copy


class CapturedDigests:
    """The digests of the launches that one CUDA graph captured."""

    def __init__(
        self, device: torch.device, memory: SpareMemory, arrived: Callable[[DigestedLaunches], None]
    ) -> None:
        """arrived -- receives the digests of each replay"""
        self.device = device
        self._memory, self._arrived = memory, arrived
        self.regions: list[Region] = []
        self._count = 0  # slots taken
        self._rows = Rows()
        self._spare: list[torch.Tensor] = []  # pinned buffers
        self._replays: deque[_Replay] = deque()
        self._last: tuple[int, Any] | None = None  # the stream of the last replay, and an event after it
        self._deleted = False  # the graph
        self._filled = False  # the slots have digests of a replay that are not wanted

    def reserve(self, count: int) -> tuple[int, int]:
        """Adjacent slots: the address and the number of the first; raises OutOfSpareMemoryError."""
        region = self._memory.take(count)
        last = self.regions[-1] if self.regions else None
        if last is not None and last.block is region.block and last.stop == region.start:
            last.stop = region.stop
        else:
            self.regions.append(region)
        self._count += count
        return region.address(region.start), self._count - count

    def add(self, address: int, stream: int, calls: Sequence[Call]) -> None:
        """Capture the digests of tensors.

        address -- of the first slot that they fill
        stream  -- the handle of a stream that is being captured

        Raises OutOfSpareMemoryError if a digest kernel is not loaded.
        """
        self._require_loaded(calls)
        launch_digests(self.device.index or 0, stream, address, calls)

    def add_merged(self, slots: Sequence[int], stream: int, calls: Sequence[Call]) -> None:
        """Capture the digests of tensors in as few launches as there can be.

        slots -- the addresses of those that they fill

        Raises OutOfSpareMemoryError if a digest kernel is not loaded.
        """
        together = merged(calls)
        self._require_loaded([call for call, _ in together])
        launch_into_slots(self.device.index or 0, stream, slots, together)

    def _require_loaded(self, calls: Sequence[Call]) -> None:
        if not all_loaded(self.device.index or 0, calls):
            raise OutOfSpareMemoryError("a digest kernel")

    @property
    def rows(self) -> int:
        """Launches and operators that were captured with their digests."""
        return len(self._rows)

    def ended(self, launch: int, first: int, sides: Sides) -> int:
        """A launch or an operator was captured with its digests, from slot `first` on; returns its row."""
        self._rows.add(launch, first, sides)
        return len(self._rows) - 1

    def replayed(self, launches: Sequence[int | None]) -> None:
        """The graph was replayed on the current stream.

        launches -- the numbers of all captured launches in this replay; None: its digests are not wanted
        """
        if not self._rows:
            return
        host = self._spare.pop() if self._spare else self._new_host()
        start = 0
        for region in self.regions:
            stop = start + region.stop - region.start
            host[start:stop].copy_(region.slots, non_blocking=True)
            region.slots.zero_()
            start = stop
        copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        copied.record()
        self._last = current_handle(self.device.index or 0), copied
        self._replays.append(_Replay([launches[launch] for launch in self._rows.launches], host, copied))

    def graph_deleted(self) -> None:
        """Let another graph use the slots."""
        self._memory.give_back(self.regions)
        self.regions = []
        self._deleted = True

    @property
    def over(self) -> bool:
        """True if there will be no more digests."""
        return self._deleted and not self._replays

    def before_replay(self) -> None:
        """Let the current stream wait until the slots of the previous replay are copied and zero."""
        if self._last is not None and self._last[0] != current_handle(self.device.index or 0):
            torch.cuda.current_stream(self.device).wait_event(self._last[1])
        if self._filled:
            self._filled = False
            for region in self.regions:
                region.slots.zero_()

    def passed_over(self) -> None:
        """The graph was replayed on the current stream, and its digests are not wanted."""
        if self._rows:
            copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            copied.record()
            self._last = current_handle(self.device.index or 0), copied
            self._filled = True

    def drain(self) -> None:
        """Wait for all digests, and deliver them."""
        while self._replays:
            self._replays[0].copied.synchronize()
            self._deliver(self._replays.popleft())

    def deliver(self) -> None:
        """Deliver the digests that have arrived; not while any graph is captured."""
        while self._replays and self._replays[0].copied.query():
            self._deliver(self._replays.popleft())

    def _deliver(self, replay: _Replay) -> None:
        self._arrived(digested(self._rows, replay.host.numpy(), replay.launches))
        self._spare.append(replay.host)

    def _new_host(self) -> torch.Tensor:
        with torch.inference_mode(False):  # what is made in the program's could not be written outside of it
            return empty((self._count, FIELDS), dtype=torch.int64, device="cpu", pin_memory=True)
