"""Device memory of the recorder, which no memory pool and no CUDA graph of the program holds.

Memory that a thread allocates while it captures a graph, or uses a memory pool, belongs to that graph
or pool. So the recorder allocates on threads of its own, and what a capture needs before the capture. A graph
writes to the addresses that it captured in each replay, also after the recording has ended: this memory is
never freed.
"""

from __future__ import annotations

import _thread
import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from tracing.digest.kernel import FIELDS
from tracing.upstream.torch.constructors import zeros

BLOCK = 4096  # slots of a block: 0.4 MB
BLOCKS = 8  # that are free before a capture

T = TypeVar("T")


class OutOfSpareMemoryError(Exception):
    """A capture needs more memory than was allocated before it."""


def outside_pools(make: Callable[[], T], stream: torch.cuda.Stream) -> T:
    """Call `make` on a thread of its own with this current stream; 0.1 ms."""
    made: list[T] = []
    failed: list[BaseException] = []
    ended = threading.Event()

    def call() -> None:
        try:
            with torch.cuda.stream(stream):
                made.append(make())
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    _thread.start_new_thread(call, ())  # not threading.Thread: the program's modes are carried to those
    ended.wait()
    if failed:
        raise failed[0]
    return made[0]


@dataclass(slots=True)
class Region:
    """Adjacent slots, all zero."""

    block: torch.Tensor  # [BLOCK, FIELDS] int64
    start: int
    stop: int

    @property
    def slots(self) -> torch.Tensor:
        """[stop - start, FIELDS] int64 on the device."""
        return self.block[self.start : self.stop]

    def address(self, slot: int) -> int:
        """The address of a slot of the block."""
        return self.block.data_ptr() + slot * FIELDS * 8


class SpareMemory:
    """Slots for digests on one GPU, for launches that are captured into CUDA graphs."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call, unused-ignore]
        self._free: list[Region] = []

    def fill(self) -> None:
        """Allocate what the next capture may need; call it before the capture begins."""
        while sum(region.stop - region.start for region in self._free) < BLOCKS * BLOCK:
            block = self.outside(lambda device: zeros((BLOCK, FIELDS), dtype=torch.int64, device=device))
            self._free.append(Region(block, 0, BLOCK))

    def outside(self, make: Callable[[torch.device], Any]) -> Any:
        """What `make` allocates on this device, in no pool of the program; does not wait for the program."""

        def on_device() -> Any:
            made = make(self._device)
            self._stream.synchronize()
            return made

        return outside_pools(on_device, self._stream)

    def take(self, count: int) -> Region:
        """Slots that are adjacent; raises OutOfSpareMemoryError."""
        for region in self._free:
            if region.stop - region.start >= count:
                taken = Region(region.block, region.start, region.start + count)
                region.start += count
                return taken
        raise OutOfSpareMemoryError(f"{count} slots")

    def give_back(self, regions: Sequence[Region]) -> None:
        """The graph that wrote to these slots no longer exists."""
        self._free += regions


@functools.cache
def spare_memory(device: torch.device) -> SpareMemory:
    """The spare memory of a device."""
    return SpareMemory(device)
