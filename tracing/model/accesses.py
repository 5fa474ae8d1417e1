"""Memory that kernels accessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tracing.model.record import Record


class Access(Record, frozen=True, file="accesses", compressed=True, segmented=True):
    """The exact accesses of one launch, as the interpreter observed them. Keys are argument positions.

    The digest of an argument that was accessed completely is that of the tensor, `Digest.bits`. Otherwise it
    covers the bytes in logical order, with zeros for bytes that were not accessed, followed by one bit for
    each byte, set if the byte was accessed. Accesses through pointers that the kernel loaded are not
    included.

    Ranges are START, STOP, START, STOP, ... in bytes from the argument's first element; an argument that was
    accessed completely, or in too many ranges to list, has none.
    """

    launch: int
    read: Mapping[int, str] = {}  # digest of the bytes that it read and had not written, all others as zeros
    written: Mapping[
        int, str
    ] = {}  # digest of the bytes that it wrote, after the launch, all others as zeros
    read_ranges: Mapping[int, tuple[int, ...]] = {}
    written_ranges: Mapping[int, tuple[int, ...]] = {}
    partly: tuple[int, ...] = ()  # arguments of which only a part was written
    uninitialised: Mapping[
        int, tuple[int, int]
    ] = {}  # elements that were read before any write: the first, and their number
    # by argument that was accessed in part: START, STOP of each dimension, which contain all accesses
    read_boxes: Mapping[int, tuple[int, ...]] = {}
    written_boxes: Mapping[int, tuple[int, ...]] = {}
    unwritten: Mapping[
        int, tuple[int, int]
    ] = {}  # elements that nothing had written when the launch ended: the first, and their number
    # by argument that was accessed in part, if its digest counts any: NaN and inf of the accessed elements
    read_nonfinite: Mapping[int, tuple[int, int]] = {}
    written_nonfinite: Mapping[int, tuple[int, int]] = {}


class MemoryEvidence(Record, frozen=True, file="memoryevidence", segmented=True):
    """A memory access that no correct program makes.

    "race" (without a GPU), "overwritten" and "unwritten" are recorded; the others are derived from the run.
    """

    launch: int  # -1: no launch
    kind: Literal[
        "out of bounds",  # an access outside of an argument
        "race",  # a program, or a thread, reads what another one writes, or overwrites it with another value
        "overwritten",  # a launch overwrites a buffer whose content is read later
        "unmasked",  # a load or store without a mask leaves its argument
        "first shape",  # a block has the size that an argument had in the first launch, and does not fit
        "unwritten",  # a value that the host receives depends on elements that nothing wrote
        "specialised",  # a compiled kernel relies on an alignment or a dtype that an argument does not have
    ]
    arguments: tuple[str, ...]
    what: str  # one sentence
    where: str = ""  # "file.py:12" of the kernel or of the generated code; empty: unknown


class OutOfBounds(Record, frozen=True, file="outofbounds", segmented=True):
    """Accesses of one launch outside of its argument, by one line of the kernel.

    Written before the first of them happens, and once more when the kernel has run if there were more: the
    last line for a launch, argument, kind, line of the kernel and `inside` counts.
    """

    launch: int
    argument: str  # from which the address is computed, or if unknown, the nearest one; empty: none
    access: Literal["load", "store"]  # an atomic is one of each
    element: int  # the first such access, in elements from the argument's first one
    program: tuple[int, int, int]  # the program that made it
    start: int  # the lowest address
    stop: int  # after the highest
    count: int  # addresses, over all programs
    inside: bool  # within the storage of the argument: a slice was overrun
    where: str  # "file.py:12" of the kernel; empty if unknown

    @property
    def what(self) -> str:
        """`56 stores outside of out, within its storage, first out[100] in program (1, 0, 0)`."""
        counted = f"{self.count} {self.access}{'' if self.count == 1 else 's'}"
        storage = ", within its storage" if self.inside else ""
        if not self.argument:
            at = f"from {self.start:#x} on, first in program {self.program}"
            return f"{counted} outside of all tensors, {at}"
        first = f"first {self.argument}[{self.element}] in program {self.program}"
        return f"{counted} outside of {self.argument}{storage}, {first}"


class Reread(Record, frozen=True, file="rereads", compressed=True, segmented=True):
    """The digest of a writer's view just before a launch that reads the same memory through another view."""

    launch: int  # that reads
    position: int
    writer: int  # launch that wrote it last
    argument: int  # position of the argument of the writer
    bits: str


class Values(Record, frozen=True, file="values", compressed=True, segmented=True):
    """The elements of one small tensor argument in logical order, before or after one launch."""

    launch: int
    position: int
    side: Literal["before", "after"]
    values: tuple[bool | int | float | str, ...]  # "nan", "inf", "-inf": JSON has no number for these
