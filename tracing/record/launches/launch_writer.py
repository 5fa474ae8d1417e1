"""Writes the lines of launches in launch order, although their data arrives in any order."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import islice, takewhile
from typing import TypeAlias

from tracing.digest.columns import Digested, DigestedLaunches, packed
from tracing.model import LaunchLine
from tracing.record.launches.launch_template import DigestSlots, LaunchTemplate
from tracing.record.nonfinite_watch import NonFiniteWatch
from tracing.store import RunWriter

_FAILED = 1 << 16  # more waiting launches than this mean that the launch before them failed
_LINES = 256  # launches on a GPU whose lines are held back at most

_Held: TypeAlias = tuple[int, LaunchTemplate, int, DigestSlots, Mapping[int, str], int, int]


class LaunchWriter:
    """Holds a launch back until its signature is known, and its digests until all earlier ones are."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        # Launches whose lines are not written yet; the compiled form appends the lines themselves.
        self.held: list[_Held | bytes] = []
        self._ready: dict[int, Digested] = {}
        self.watch: NonFiniteWatch | None = None  # receives the digests of launches
        self.waiting: deque[int] = deque()  # launches whose digest lines are to be written, in this order

    def hold(
        self,
        index: int,
        template: LaunchTemplate,
        stream: int,
        slots: DigestSlots,
        writers: Mapping[int, str],
        site: int,
        thread: int,
    ) -> None:
        """Add the next launch."""
        launch = index, template, stream, slots, writers, site, thread
        # as text, if it is known: a fatal signal writes what is held as bytes
        self.held.append(launch if template.signature is None else self._writer.encoded(_line(*launch)))

    def expect(self, index: int, template: LaunchTemplate) -> None:
        """Announce the digests of this launch, which precede those of later launches."""
        self.waiting.append(index)
        if self.watch is not None:
            self.watch.launched[index] = template

    def flush_if_long(self) -> None:
        """Write the lines if there are many, before another launch refers to records of this segment."""
        if len(self.held) >= _LINES:
            self.flush()

    def flush(self) -> None:
        """Write the lines that are known."""
        self._writer.make_room()  # may call this method: the lines go to the segment that they refer to
        # one without a signature, whose autotuner chooses in another thread, holds back the rest; for long
        # only if it failed
        if len(self.held) >= 4 * _LINES:
            self._drop_unsigned()
        lines = [one for one in self.held if isinstance(one, bytes)]  # usually all of them
        if len(lines) < len(self.held):
            lines = [self._encoded(one) for one in takewhile(_signed, self.held)]
        self._writer.extend_encoded(LaunchLine, lines)
        del self.held[: len(lines)]

    def _encoded(self, held: _Held | bytes) -> bytes:
        return held if isinstance(held, bytes) else self._writer.encoded(_line(*held))

    def digested(self, launches: DigestedLaunches) -> None:
        """Add digests, and write all that do not wait for earlier ones."""
        if self.watch is not None:
            self.watch.digested(launches)
        if not self._ready and self._are_next(launches):  # the usual case: all are on one stream
            for _ in launches.launches:
                self.waiting.popleft()
            self._writer.append(launches.line())
            return
        self._ready.update({one.launch: one for one in launches})
        failed = len(self._ready) >= _FAILED
        lines = []
        while self.waiting and (failed or self.waiting[0] in self._ready):
            index = self.waiting.popleft()
            failed = failed and index not in self._ready
            if index in self._ready:
                lines.append(self._ready.pop(index))
        self._writer.extend(list(packed(lines)))

    def _are_next(self, launches: DigestedLaunches) -> bool:
        return list(islice(self.waiting, len(launches.launches))) == launches.launches

    def close(self) -> None:
        """Write everything; a launch that failed has no digests, and later ones no longer wait for it."""
        self._drop_unsigned()
        self.flush()
        self._writer.extend(list(packed([self._ready[index] for index in sorted(self._ready)])))
        self._ready.clear()

    def _drop_unsigned(self) -> None:
        self.held[:] = filter(_signed, self.held)


def _signed(held: _Held | bytes) -> bool:
    return isinstance(held, bytes) or held[1].signature is not None


def _line(
    index: int,
    template: LaunchTemplate,
    stream: int,
    slots: DigestSlots,
    writers: Mapping[int, str],
    site: int,
    thread: int,
) -> LaunchLine:
    return LaunchLine(index, template.signature or 0, stream, slots.storages, writers, site, thread)
