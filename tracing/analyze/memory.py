"""What is known of memory while two runs are compared: who wrote it last, and what of it differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracing.analyze.elements import dense, extent
from tracing.analyze.ways import Slot, Way, Written
from tracing.digests import Row


class Memory:
    """The storages of one process of each run; rows and slots are of the launches that are compared."""

    def __init__(self) -> None:
        self._writers: dict[int, Written] = {}  # by storage of run a: the launch that wrote it last
        self._added: set[int] = set()  # storages of run b that a launch wrote last which a has not
        self._tainted: dict[int, tuple[int, int]] = {}  # by storage of run a: bytes that differ in b
        self._loose: set[int] = set()  # storages of run a that differ where they may not have been written

    def known(self, writers: Mapping[int, Written]) -> None:
        """Take over who wrote what in the launches before those that are looked at one by one."""
        self._writers.update(writers)

    def writer(self, slot: Slot, a: Row) -> Written | None:
        """The launch of run a that last wrote what a slot is of."""
        return self._writers.get(a.line.storages[slot.tensor])

    def is_loose(self, slot: Slot, a: Row) -> bool:
        """Whether what a slot is of may differ only because part of it was never written."""
        return a.line.storages[slot.tensor] in self._loose

    def follows(self, slot: Slot, a: Row, b: Row) -> bool:
        """Whether an input that differs was left so by a launch that differed before."""
        if b.line.storages[slot.tensor_b] in self._added:
            return True
        tainted = self._tainted.get(a.line.storages[slot.tensor])
        if tainted is None or slot.position in a.line.writers:
            return False
        first, behind = extent(slot.meta)
        return first < tainted[1] and tainted[0] < behind

    def taint(self, slots: Iterable[Slot], a: Row) -> None:
        """What these slots are of differs from now on."""
        for slot in slots:
            storage = a.line.storages[slot.tensor]
            first, behind = extent(slot.meta)
            known = self._tainted.get(storage, (first, behind))
            self._tainted[storage] = (min(first, known[0]), max(behind, known[1]))

    def loosen(self, slots: Iterable[Slot], a: Row) -> None:
        """What these slots are of may differ only where it was never written."""
        self._loose |= {a.line.storages[slot.tensor] for slot in slots}

    def tighten(self, slots: Iterable[Slot], a: Row) -> None:
        """What these slots are of was written."""
        self._loose -= {a.line.storages[slot.tensor] for slot in slots}

    def wrote(self, a: Row, b: Row, way: Way, different: Iterable[Slot] = ()) -> None:
        """A launch of both runs wrote what it may write; `different` of it came out differently."""
        for place in way.writes:
            storage = a.line.storages[place.tensor]
            self._writers[storage] = place.written(a)
            if self._added and place.tensor < len(b.line.storages):
                self._added.discard(b.line.storages[place.tensor])
            if storage in self._tainted and dense(place.meta):
                first, behind = extent(place.meta)
                tainted = self._tainted[storage]
                if first <= tainted[0] and tainted[1] <= behind:
                    del self._tainted[storage]
                    self._loose.discard(storage)
        self.taint(different, a)

    def wrote_alone(self, row: Row, way: Way, *, in_a: bool) -> None:
        """A launch wrote that only one run has."""
        for place in way.writes:
            storage = row.line.storages[place.tensor]
            if in_a:
                self._writers[storage] = place.written(row)._replace(only_in_a=True)
                self._tainted[storage] = extent(place.meta)
            else:
                self._added.add(storage)
