"""Numbers records that later ones refer to, and writes each once.

Of a run in segments, each segment has the records that its lines refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from tracing.model import Record
from tracing.store.writer import RunWriter

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Known:
    number: int
    kind: type[Record]
    line: bytes  # its record, encoded: each segment that refers to it has a copy
    segment: int = -1  # the last one that refers to it


class Numbers(Generic[K]):
    """The numbers of keys, from 0; a key that no segment on disk refers to is forgotten."""

    def __init__(self, writer: RunWriter, record: Callable[[int, K], Record], *, held: bool = False) -> None:
        """record -- the record of a key with its number
        held   -- write many such records at a time: programs have as many as launches
        """
        self._writer, self._record, self._held = writer, record, held
        self._known: dict[K, _Known] = {}
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
        return {known.number for known in self._known.values()}

    def of(self, key: K) -> int:
        """The number of a key, for a record that is about to be written."""
        segments = self._writer.segments
        segment = segments.number if segments is not None else 0
        known = self._known.get(key)
        if known is None:
            record = self._record(self._count, key)
            known = _Known(self._count, type(record), self._writer.encoded(record))
            self._count += 1
            self.changes += 1
            self._known[key] = known
        if known.segment != segment:
            self._writer.hold(known.kind, known.line)
            if not self._held:
                self._writer.release()
            known.segment = segment  # after it: Ctrl-C may have stopped the lines before
        return known.number

    def _forget(self, oldest: int) -> None:
        self.changes += 1
        self._known = {key: known for key, known in self._known.items() if known.segment >= oldest}
