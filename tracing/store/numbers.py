"""Numbers records that later ones refer to, and writes each once.

Of a run in segments, each segment has the records that its lines refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from tracing.model import Record
from tracing.store.writer import RunWriter

K = TypeVar("K", bound=Hashable)


class Numbers(Generic[K]):
    """The numbers of keys, from 0; a key that no segment on disk refers to is forgotten."""

    def __init__(self, writer: RunWriter, record: Callable[[int, K], Record]) -> None:
        """record -- the record of a key with its number"""
        self._writer, self._record = writer, record
        self._known: dict[K, tuple[int, int]] = {}  # the number, and the last segment that refers to it
        self._count = 0
        self.changes = 0  # keys that were added, and times that some were forgotten
        if writer.segments is not None:
            writer.segments.deleted.append(self._forget)

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[K]:
        return iter(self._known)

    def in_use(self) -> set[int]:
        """The numbers of the keys that are remembered."""
        return {number for number, _ in self._known.values()}

    def of(self, key: K) -> int:
        """The number of a key, for a record that is about to be written."""
        segments = self._writer.segments
        segment = segments.number if segments is not None else 0
        number, last = self._known.get(key, (self._count, -1))
        if last != segment:
            if number == self._count:
                self._count += 1
                self.changes += 1
            self._writer.hold(self._record(number, key))
            self._known[key] = number, segment  # after it: Ctrl-C may have stopped the line before
        return number

    def _forget(self, oldest: int) -> None:
        self.changes += 1
        self._known = {key: known for key, known in self._known.items() if known[1] >= oldest}
