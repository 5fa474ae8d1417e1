"""The memory of an executed kernel: every address holds a value, and every store is recorded.

Each pointer argument points to a separate range, so large that no index exceeds it. Its
contents are generated from the argument's number and the index: equal in every execution, and different at
every address.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracing.mlir.types import Type, Unknown, rounded

RANGE = 1 << 44  # bytes between the ranges of two arguments
MIDDLE = RANGE >> 1  # offset of a pointer in its range: an index may be negative
_SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}


class ByteMemory:
    """The memory of one evaluation."""

    def __init__(self, magnitude: float = 1.0) -> None:
        """magnitude -- floating-point numbers are from -magnitude to magnitude"""
        self._magnitude = magnitude
        self._elements: dict[int, Type] = {}  # by argument
        self._stored: dict[int, dict[int, Any]] = {}  # by argument, and index of the element

    def pointer(self, argument: int, pointee: str) -> Any:
        """The address that a pointer argument holds."""
        self._elements[argument] = Type((), pointee)
        return np.int64((argument + 1) * RANGE + MIDDLE)

    def load(self, addresses: Any, pointee: str) -> Any:
        """The elements at some addresses."""
        addresses = np.asarray(addresses, dtype=np.int64)
        loaded = np.zeros(addresses.shape, dtype=Type((), pointee).dtype)
        for argument in np.unique(addresses // RANGE - 1):
            where = addresses // RANGE - 1 == argument
            loaded[where] = self._at(int(argument), addresses[where], pointee)
        return loaded

    def store(self, addresses: Any, values: Any, pointee: str) -> None:
        """Store elements; the last one wins if several have one address."""
        flat = np.asarray(addresses, dtype=np.int64).ravel()
        content = np.broadcast_to(np.asarray(values), np.shape(addresses)).ravel()
        for argument in np.unique(flat // RANGE - 1):
            where = flat // RANGE - 1 == argument
            indices = self._indices(int(argument), flat[where], pointee)
            stored = self._stored.setdefault(int(argument), {})
            held = _read_as(content[where], pointee, self._elements[int(argument)].element)
            stored.update(zip(indices.tolist(), held.tolist(), strict=True))

    def stored(self) -> dict[tuple[int, int], Any]:
        """The stored values, by argument and index."""
        return {
            (arg, index): value for arg, stored in self._stored.items() for index, value in stored.items()
        }

    def _at(self, argument: int, addresses: Any, pointee: str) -> Any:
        indices = self._indices(argument, addresses, pointee)
        value = _made_up(argument, indices, self._elements[argument], self._magnitude)
        stored = self._stored.get(argument)
        if stored:
            keys = np.array(sorted(stored), dtype=np.int64)
            at = np.minimum(np.searchsorted(keys, indices), len(keys) - 1)
            known = keys[at] == indices
            value[known] = [stored[index] for index in indices[known].tolist()]
        return _read_as(value, self._elements[argument].element, pointee)

    def _indices(self, argument: int, addresses: Any, pointee: str) -> Any:
        known = self._elements.get(argument)
        if known is None or size_of(known.element) != size_of(pointee):
            raise Unknown(f"memory of {known.element if known else 'nothing'} used as {pointee}")
        offsets = addresses - ((argument + 1) * RANGE + MIDDLE)
        if np.any(offsets % size_of(pointee)):
            raise Unknown("an address between two elements")
        return offsets // size_of(pointee)


def size_of(pointee: str) -> int:
    """The bytes of an element in memory; raises Unknown."""
    if pointee not in _SIZES:
        raise Unknown(f"elements of type {pointee} in memory")
    return _SIZES[pointee]


def _read_as(values: Any, pointee: str, other: str) -> Any:
    # reinterprets elements of one type as another of the same size
    if pointee == other:
        return values
    if {pointee, other} == {"i1", "i8"}:
        return values.astype(Type((), other).dtype)
    if "bf16" in (pointee, other):
        raise Unknown("bf16 used as another type")
    return np.asarray(values).view(Type((), other).dtype)


def _made_up(argument: int, indices: Any, of: Type, magnitude: float) -> Any:
    bits = indices.astype(np.uint64) + np.uint64(argument * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):  # Source: splitmix64
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    if of.element.startswith(("f", "bf")):
        of_one = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0
        return rounded(of_one * magnitude, of).copy()
    return (bits % np.uint64(2 if of.element == "i1" else 8)).astype(of.dtype)
