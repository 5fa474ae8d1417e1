"""One launch for a comparison, with the writes that produced its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tracing.analyze.align.launch_matching import Queue
from tracing.analyze.compare.timeline.memory import PlacedTensor, Sources, span
from tracing.digest.columns import Row
from tracing.model import Access, Argument, Kernel, OutOfBounds, Reread, Signature, TensorMeta
from tracing.views import relation


class Position(NamedTuple):
    """The numbers of launches of a process, and of lines of their digests, before a position."""

    launches: int = 0
    lines: int = 0


@dataclass(slots=True)
class TimelineStep:
    """A launch with the writes that produced its inputs."""

    row: Row
    kernel: Kernel
    signature: Signature
    addresses: Sequence[int]  # of the storages of its tensors
    sources: Mapping[int, Sources]  # by position of the argument that it reads
    access: Access | None = None  # None: only digests are known
    out_of_bounds: tuple[OutOfBounds, ...] = ()
    rereads: tuple[Reread, ...] = ()
    operators: tuple[tuple[str, str], ...] = ()  # the previous operator calls: names, arguments

    @property
    def index(self) -> int:
        return self.row.line.index

    @property
    def ends_line(self) -> bool:
        """True if its digests are the last ones in a line."""
        batch = self.row.batch
        return batch is not None and batch.launches[-1] == self.index

    @property
    def queue(self) -> Queue:
        return self.row.line.stream, self.row.line.thread

    def tensor(self, position: int) -> PlacedTensor:
        """The storage and the layout of an argument."""
        return next(
            PlacedTensor(storage, meta)
            for n, meta, storage in storages_of(self.signature, self.row.line.storages)
            if n == position
        )

    def read_tensors(self) -> list[PlacedTensor]:
        """The storages and layouts of the tensors that it reads."""
        args, tensors = self.signature.args, storages_of(self.signature, self.row.line.storages)
        return [PlacedTensor(storage, meta) for n, meta, storage in tensors if args[n].reads]

    def address(self, position: int) -> int:
        """The address of the storage of an argument."""
        return next(address for n, _, address in tensors_of(self.signature, self.addresses) if n == position)

    def overlaps(self) -> tuple[tuple[str, str, int], ...]:
        """The arguments that share bytes, and the distance in bytes between their first elements."""
        if len(set(self.addresses)) == len(self.addresses):
            return ()
        ranges = [one[1:] for one in self.ranges()]
        return tuple(
            (name, other_name, other - address)
            for n, (address, meta, name) in enumerate(ranges)
            for other, other_meta, other_name in ranges[n + 1 :]
            if relation(other_meta, meta, other - address) != "disjoint"
        )

    def ranges(self) -> Iterator[tuple[bool, int, TensorMeta, str]]:
        """The accesses of the launch: whether it writes, address of the first element, layout, argument."""
        for _, arg, address in tensors_of(self.signature, self.addresses):
            assert arg.tensor is not None
            if arg.reads or arg.writes:
                yield arg.writes, span(address, arg.tensor)[0], arg.tensor, arg.name


def tensors_of(signature: Signature, addresses: Sequence[int]) -> Iterator[tuple[int, Argument, int]]:
    """The tensor arguments of a launch: position, argument, address of the storage."""
    tensors = ((n, arg) for n, arg in enumerate(signature.args) if arg.tensor is not None)
    return ((n, arg, address) for (n, arg), address in zip(tensors, addresses, strict=False))


def storages_of(signature: Signature, storages: Sequence[int]) -> Iterator[tuple[int, TensorMeta, int]]:
    """The tensor arguments of a launch: position, layout, number of the storage."""
    tensors = ((n, arg.tensor) for n, arg in enumerate(signature.args) if arg.tensor is not None)
    return ((n, meta, storage) for (n, meta), storage in zip(tensors, storages, strict=False))
