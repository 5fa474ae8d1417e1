"""The accesses of one launch to one block of host memory, byte by byte."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tracing.digest.host import memory
from tracing.interpreter.gates import AccessKind, Addresses, Mask
from tracing.launch.memory.happens_before import HappensBefore
from tracing.launch.memory.occupied_mask import occupied
from tracing.launch.memory.program_order import ProgramOrder
from tracing.model import TensorMeta
from tracing.views import dense, element_bytes, extent, row_major

Bytes: TypeAlias = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class AccessedArgument:
    """One tensor argument of a launch."""

    name: str
    meta: TensorMeta
    start: int  # address of its first element
    stop: int  # exclusive
    itemsize: int

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.meta.shape)

    @classmethod
    def of(cls, name: str, meta: TensorMeta, address: int) -> AccessedArgument:
        """A tensor whose first element has this address."""
        first, last = extent(meta)
        return cls(name, meta, address, address + last - first, element_bytes(meta.dtype))


class MemoryBlock:
    """A block of memory that contains arguments.

    Reads and writes are recorded in units: the largest number of bytes that divides the bounds of all
    accesses.
    """

    def __init__(self, start: int, stop: int, owner: object) -> None:
        """start, stop -- addresses
        owner       -- keeps the memory
        """
        self.start, self.stop = start, stop
        self.arguments: list[AccessedArgument] = []
        self._memory = memory(start, stop - start, owner)
        self._occupied: Mask | None = None  # bytes that belong to an argument
        self.forget()

    def forget(self) -> None:
        """Drop what was recorded."""
        self._unit = 0  # bytes; 0: nothing was accessed
        self._read: Mask | None = None  # before it was written
        self._written: Mask | None = None
        self._before: dict[str, Bytes] = {}  # what each argument's memory held before the first write

    # ---- while the launch runs

    @property
    def accessed(self) -> bool:
        """True if an access was recorded."""
        return self._unit > 0

    @property
    def loaded(self) -> bool:
        """True if a load was recorded."""
        return self._read is not None

    @property
    def shifted(self) -> bool:
        """True if arguments lie in the block at different positions or with different strides."""
        return len({(one.start, one.meta.stride, one.meta.shape) for one in self.arguments}) > 1

    def covers(self, low: int, high: int) -> bool:
        """True if one argument certainly has elements at all these addresses."""
        return any(one.start <= low and high <= one.stop and dense(one.meta) for one in self.arguments)

    def holds(self, addresses: Addresses, size: int) -> Mask:
        """[lanes] True where all of `size` bytes are in the block."""
        inside: Mask = (addresses >= self.start) & (addresses <= self.stop - size)
        return inside

    def strange(self, addresses: Addresses, size: int) -> Mask:
        """[lanes] True where not all of `size` bytes belong to an argument; they lie in the block."""
        if self._occupied is None:
            self._occupied = np.zeros(self.stop - self.start, np.bool_)
            for one in self.arguments:
                self._occupied[one.start - self.start : one.stop - self.start] |= occupied(one.meta)
        at = addresses - self.start
        inside = self._occupied[at]
        for byte in range(1, size):
            inside &= self._occupied[at + byte]
        return ~inside

    def note(self, kind: AccessKind, addresses: Addresses, size: int) -> None:
        """Record one load or store of `size` bytes at each address, which is about to happen."""
        at = self._units(addresses, size)
        if kind == "store":
            if self._written is None:
                self._written = np.zeros(self._count(), np.bool_)
                self._before = {one.name: self._of(one).copy() for one in self.arguments}
            for unit in range(size // self._unit):
                self._written[at + unit] = True
            return
        if self._read is None:
            self._read = np.zeros(self._count(), np.bool_)
        for unit in range(size // self._unit):
            units = at + unit if unit else at
            self._read[units if self._written is None else units[~self._written[units]]] = True

    def _units(self, addresses: Addresses, size: int) -> npt.NDArray[np.int64]:
        offsets = addresses - self.start
        if not self._unit:
            self._unit = min([size, *(one.itemsize for one in self.arguments)])
        if self._unit > size or int(np.bitwise_or.reduce(offsets)) & (self._unit - 1):
            self._refine()
        shift = self._unit.bit_length() - 1
        return offsets >> shift if shift else offsets

    def _refine(self) -> None:
        parts, self._unit = self._unit, 1
        self._read = None if self._read is None else np.repeat(self._read, parts)
        self._written = None if self._written is None else np.repeat(self._written, parts)

    def _count(self) -> int:
        return -(-(self.stop - self.start) // self._unit)

    def _of(self, argument: AccessedArgument) -> Bytes:
        return self._memory[argument.start - self.start : argument.stop - self.start]

    def program_order(self, order: HappensBefore) -> ProgramOrder:
        """The tracker of conflicts between programs in this block."""
        unit = min(one.itemsize for one in self.arguments)
        return ProgramOrder(self.start, self._memory, unit, order, shifted=self.shifted)

    # ---- when it has run

    def read(self, argument: AccessedArgument) -> Mask:
        """[elements, parts of one] in logical order: which were read before they were written."""
        return self._parts(argument, self._read)

    def written(self, argument: AccessedArgument) -> Mask:
        """[elements, parts of one] in logical order: which were written."""
        return self._parts(argument, self._written)

    def box(self, argument: AccessedArgument, *, written: bool) -> tuple[int, ...]:
        """START, STOP for each dimension: the smallest box with all elements that were read, or written."""
        touched = (self.written if written else self.read)(argument).any(axis=1).reshape(argument.meta.shape)
        box: list[int] = []
        for dimension in range(touched.ndim):
            others = tuple(other for other in range(touched.ndim) if other != dimension)
            at = np.flatnonzero(touched.any(axis=others))
            box += [int(at[0]), int(at[-1]) + 1] if at.size else [0, 0]
        return tuple(box)

    def content(self, argument: AccessedArgument) -> Bytes:
        """[elements, bytes of one] in logical order, with their current contents."""
        return logical(self._of(argument), argument.meta, 1)

    def content_before(self, argument: AccessedArgument) -> Bytes:
        """[elements, bytes of one] in logical order, as they were before the launch."""
        before = self._before.get(argument.name)
        return self.content(argument) if before is None else logical(before, argument.meta, 1)

    def written_bytes(self, start: int, stop: int) -> Mask:
        """[bytes] between two addresses: which were written."""
        return self._range(self._written, start, stop)

    def read_bytes(self, start: int, stop: int) -> Mask:
        """[bytes] between two addresses: which were read before they were written."""
        return self._range(self._read, start, stop)

    def _range(self, mask: Mask | None, start: int, stop: int) -> Mask:
        if mask is None:
            return np.zeros(stop - start, np.bool_)
        first, last = (start - self.start) // self._unit, -(-(stop - self.start) // self._unit)
        whole = np.repeat(mask[first:last], self._unit)
        skipped = start - self.start - first * self._unit
        return whole[skipped : skipped + stop - start]

    def _parts(self, argument: AccessedArgument, mask: Mask | None) -> Mask:
        if mask is None:
            return np.zeros((math.prod(argument.meta.shape), 1), np.bool_)
        first = (argument.start - self.start) // self._unit
        return logical(mask[first:], argument.meta, self._unit)


A = TypeVar("A", Mask, Bytes)


def logical(array: A, meta: TensorMeta, unit: int) -> A:
    """[elements, units of one] in logical order, of an array with one item for each unit of memory.

    array -- begins at the tensor's first element
    unit  -- bytes
    """
    return strided(array, meta, unit).reshape(math.prod(meta.shape), element_bytes(meta.dtype) // unit)


def strided(array: A, meta: TensorMeta, unit: int) -> A:
    """[*shape, units of one element], a view of an array with one item for each unit of memory."""
    parts: int = element_bytes(meta.dtype) // unit
    if row_major(meta):
        return array[: math.prod(meta.shape) * parts]
    step: int = array.itemsize
    strides: list[int] = [*(stride * parts * step for stride in meta.stride), step]
    view: A = np.lib.stride_tricks.as_strided(array, (*meta.shape, parts), strides)
    return view
