"""Follows a NaN or an inf from the event that it comes from through those that carry it on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracing.analyze.nonfinite.data_events import DataEvent, Kind, NonFiniteTensor


class Carriers:
    """The origin of the value, and the events that carry it on, or may, in order."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self.certain = True  # each of the events is known to read and to write such a value
        self._last = 0  # the last one that is known to write such a value, or whose result is not known
        self._by_storage: dict[int, int] = {}  # the last one that wrote it
        self._events: list[tuple[DataEvent, int]] = []  # with the number of the one before it in its chain

    @property
    def count(self) -> int:
        """How many carry it on, or may."""
        return len(self._events) - 1

    def first(self, name: str) -> DataEvent | None:
        """The first event of a name that carries it on, or may."""
        return next((event for event, _ in self._events[1:] if event.name == name), None)

    def begin(self, origin: DataEvent, tensors: Iterable[NonFiniteTensor]) -> None:
        """The value comes from an event, which reads or writes it in these tensors."""
        self._events.append((origin, -1))
        self._by_storage |= dict.fromkeys((one.storage for one in tensors if one.storage is not None), 0)

    def follow(self, event: DataEvent, *, wrote: bool) -> None:
        """A later event runs; wrote: a tensor that it wrote holds such a value."""
        read = [one for one in event.reads if one.digest is None or one.accessed(self._kind) is not False]
        parents = [self._by_storage[one.storage] for one in read if one.storage in self._by_storage]
        for storage in event.made:
            self._by_storage.pop(storage, None)
        wrote = wrote or any(one.accessed(self._kind) is None for one in event.writes)
        if not parents or (event.known and not wrote):
            self.forget(one for one in event.writes if not one.bad(self._kind))
            return
        self._events.append((event, max(parents)))
        known = event.known and any(one.accessed(self._kind) for one in read)
        self.certain = self.certain and known
        self._by_storage |= dict.fromkeys(
            (one.storage for one in event.writes if one.storage is not None), len(self._events) - 1
        )
        if wrote:
            self._last = len(self._events) - 1

    def forget(self, written: Iterable[NonFiniteTensor]) -> None:
        """These tensors were overwritten, or are new."""
        for one in written:
            if one.storage is not None:
                self._by_storage.pop(one.storage, None)

    def chain(self) -> Sequence[DataEvent]:
        """Those that carry it on to the last one, each from the one before it."""
        chain: list[DataEvent] = []
        last = self._last
        while last > 0:
            event, last = self._events[last]
            chain.append(event)
        return chain[::-1]
