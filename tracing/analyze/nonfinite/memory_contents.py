"""What is known about the contents of memory before an event reads it, or overwrites a part of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tracing.analyze.nonfinite.data_events import DataEvent, Kind, NonFiniteTensor
from tracing.model import CallSite
from tracing.views import extent, same_digest

# Their results are computed, though an input may hold numbers of the program.
_PRODUCTS = {
    f"aten::{name}"
    for name in ("mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot", "_scaled_mm", "linear", "convolution")
}


@dataclass(frozen=True, slots=True)
class OldContents:
    """A tensor that a launch wrote, with a NaN or an inf that it held, or may have held, before it."""

    event: DataEvent
    tensor: NonFiniteTensor
    certain: bool  # False: the launch may have stored it
    operator: str = ""  # without digests, that wrote the memory before; empty: none
    given: bool = False  # the operator may have passed on a value of the program's own
    filler: DataEvent | None = None  # wrote the memory before it was allocated for this tensor


class Undigested(NamedTuple):
    """What an operator without digests wrote last."""

    operator: str
    elements: int
    computed: bool  # False: it fills memory, with finite numbers
    given: bool  # it may pass on a NaN or an inf that is a number or data of the program, as a mask's -inf
    site: CallSite | None = None

    @property
    def text(self) -> str:
        """The operator, and the line of the program that calls it, if that is known."""
        return f"{self.operator}, called at {self.site}," if self.site else self.operator


class MemoryContents:
    """Follows the events of one process up to the first that reads or stores a NaN or an inf."""

    def __init__(self, kind: Kind) -> None:
        self.old: dict[int, OldContents] = {}  # by storage
        self.undigested: dict[int, Undigested] = {}  # by storage
        self._unseen = False  # what an operator without digests wrote is gone, and no digest has shown it
        self._kind: Kind = kind
        self._last: dict[int, DataEvent] = {}  # by storage: the last event that wrote it
        self._fillers: dict[int, DataEvent] = {}  # by storage: the last one before it was allocated

    def undecided(self) -> list[OldContents]:
        """The tensors of which it is not known who stored the value: a launch, or one before it."""
        return [one for one in self.old.values() if not one.certain or one.operator]

    @property
    def unseen(self) -> bool:
        """True if an operator without digests may have made such a value, which no digest has shown."""
        return self._unseen or any(one.computed for one in self.undigested.values())

    def other_dtype(self, read: NonFiniteTensor) -> tuple[DataEvent, str] | None:
        """The event that wrote exactly these bytes last, as numbers of another dtype, and that dtype."""
        event = self._last.get(read.storage) if read.storage is not None else None
        for one in event.writes if event is not None else ():
            placed = one.storage == read.storage and extent(one.meta)[0] == extent(read.meta)[0]
            if placed and one.meta.dtype != read.meta.dtype and same_digest(one.meta, read.meta):
                left = one.digest.bits if one.digest is not None else ""
                if event is not None and read.digest is not None and left and left == read.digest.bits:
                    return event, one.meta.dtype
        return None

    def allocated(self, event: DataEvent) -> None:
        """Memory was allocated, and nothing has written it since."""
        for storage in _storages(event.writes):
            self._lose(storage)
            for known in (self.old, self._fillers):
                known.pop(storage, None)
            if storage in self._last:
                self._fillers[storage] = self._last.pop(storage)

    def about_to_run(self, event: DataEvent) -> None:
        """Note what an operator without digests writes, and what the digests of an event show."""
        if event.known:
            for one in event.reads:
                if (
                    one.storage in self.undigested
                    and one.elements >= self.undigested[one.storage].elements
                    and not one.accessed(self._kind)
                ):
                    del self.undigested[one.storage]
        elif not event.launched:
            computed = bool(event.reads or event.from_python or event.bad_numbers(self._kind))
            given = self._given(event)
            for one in event.writes:
                if one.storage is not None:
                    self._lose(one.storage)
                    self.undigested[one.storage] = Undigested(
                        event.name, one.elements, computed, given, event.source.site
                    )

    def _given(self, event: DataEvent) -> bool:
        if event.from_python or event.bad_numbers("any"):
            return True
        read = [self.undigested[one.storage] for one in event.reads if one.storage in self.undigested]
        return event.name.partition(".")[0] not in _PRODUCTS and any(one.given for one in read)

    def ran(self, event: DataEvent) -> None:
        """Note the contents after an event that neither reads nor certainly stores such a value."""
        for one in event.writes:
            if one.storage is None:
                continue
            if one.bad(self._kind):
                self._keep(event, one, one.storage)
            elif event.known:
                self._clear(one)
            self._last[one.storage] = event

    def _keep(self, event: DataEvent, one: NonFiniteTensor, storage: int) -> None:
        undigested = self.undigested.get(storage)
        operator, given = (undigested.text, undigested.given) if undigested else ("", False)
        certain = one.accessed(self._kind) is False
        filler = self._fillers.get(storage)
        self.old.setdefault(storage, OldContents(event, one, certain, operator, given, filler))

    def _clear(self, one: NonFiniteTensor) -> None:
        # a known event has overwritten this tensor with finite values
        if one.storage is not None:
            self._lose(one.storage)
        if one.storage in self.old and one.elements >= self.old[one.storage].tensor.elements:
            del self.old[one.storage]

    def _lose(self, storage: int) -> None:
        # what an operator without digests wrote is overwritten, or freed, and no digest has shown it
        lost = self.undigested.pop(storage, None)
        self._unseen |= lost is not None and lost.computed


def _storages(tensors: tuple[NonFiniteTensor, ...]) -> list[int]:
    return [one.storage for one in tensors if one.storage is not None]
