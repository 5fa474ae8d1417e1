"""Which programs of a launch read and write each element of one storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tracing.interpreter.batch.divergence import OneAtATime
from tracing.interpreter.batch.storage_memory import StorageMemory
from tracing.interpreter.gates import Addresses

Programs: TypeAlias = npt.NDArray[np.int32]  # from 1
_NOBODY, SEVERAL = 0, -1


class ReadersNeeded(Exception):
    """A launch writes to a storage that it reads: only with its readers known can programs be independent."""


class Ownership:
    """Raises OneAtATime as soon as a program writes what another one reads or writes, in whatever order.

    Memory: 4 bytes for each unit that is written, and if readers are followed, for each that is read.
    """

    def __init__(self, storage: StorageMemory, *, readers: bool) -> None:
        """readers -- False: raises ReadersNeeded if the storage is both read and written"""
        self._storage = storage
        self._writers: Programs | None = None
        self._readers: Programs | None = None
        self._follow_readers = readers
        self._is_read = False

    def load(self, addresses: Addresses, size: int, programs: Callable[[], Programs]) -> None:
        """Programs are about to read.

        addresses -- [lanes], each of `size` bytes
        programs  -- returns [lanes], or [1] for all lanes; called if it matters
        """
        self._is_read = True
        if self._writers is None and not self._follow_readers:
            return
        units, reading = self._units(addresses, size, programs())
        if self._writers is not None:
            _require_own(self._writers[units], reading)
        if self._follow_readers:
            if self._readers is None:
                self._readers = self._nobody()
            before = self._readers[units]
            self._readers[units] = reading
            others = (self._readers[units] != reading) | ((before != _NOBODY) & (before != reading))
            self._readers[units[others]] = SEVERAL

    def store(self, addresses: Addresses, size: int, programs: Callable[[], Programs]) -> None:
        """Programs are about to write; as `load`."""
        if self._is_read and not self._follow_readers:
            raise ReadersNeeded
        units, writing = self._units(addresses, size, programs())
        if writing[0] == SEVERAL:
            raise OneAtATime("accesses memory that another program writes")
        if self._writers is None:
            self._writers = self._nobody()
        _require_own(self._writers[units], writing)
        self._writers[units] = writing
        _require_own(self._writers[units], writing)
        if self._readers is not None:
            _require_own(self._readers[units], writing)

    def _units(self, addresses: Addresses, size: int, programs: Programs) -> tuple[Addresses, Programs]:
        offsets = addresses - self._storage.start
        unit = self._storage.unit
        parts = size // unit
        if size % unit or int(np.bitwise_or.reduce(offsets)) & (unit - 1):
            raise OneAtATime("accesses parts of elements")
        units = offsets >> (unit.bit_length() - 1)
        if parts == 1:
            return units, programs
        units = (units[:, None] + np.arange(parts)).reshape(-1)
        return units, programs if programs.size == 1 else np.repeat(programs, parts)

    def _nobody(self) -> Programs:
        return np.zeros(-(-(self._storage.stop - self._storage.start) // self._storage.unit), np.int32)


def _require_own(owners: Programs, programs: Programs) -> None:
    if ((owners != _NOBODY) & (owners != programs)).any():
        raise OneAtATime("accesses memory that another program writes")
