"""Follows a tensor that an operator copied element by element to the writes that it was copied from."""

from __future__ import annotations

from tracing.analyze.compare.timeline.memory import Input, Write, WrittenBits
from tracing.views import extent, same_digest

_NOWHERE = -1  # no tensor begins at this address

# The result of these operators has the bits of their only input, if both have one layout.
COPIES = frozenset([
    "aten::_to_copy", "aten::alias_copy", "aten::clone", "aten::contiguous", "aten::copy", "aten::copy_",
    "aten::detach_copy", "aten::view_copy",
])  # fmt: skip


def copied_from(write: Write) -> tuple[Write, ...]:
    """The writes that a copy consists of, as if each had written the memory of the copy itself.

    Empty if the operator is no copy, or if some of the copied bytes have no recorded writer.
    """
    read = _copied_input(write)
    if read is None or None in read.sources:
        return ()
    moved = write.address - read.address
    return tuple(
        one._replace(address=one.address + moved, left=_moved(one.left, read, moved), order=write.order)
        for one in read.sources
        if one is not None
    )


def _moved(left: WrittenBits, read: Input, distance: int) -> WrittenBits:
    # nobody can read the bits of a view of which only a part was copied
    assert read.tensor is not None
    (start, stop), (first, last) = extent(left.view), extent(read.tensor.meta)
    whole = read.address <= left.address and left.address + stop - start <= read.address + last - first
    return WrittenBits(left.address + distance if whole else _NOWHERE, left.view, left.bits)


def _copied_input(write: Write) -> Input | None:
    # the input whose bits an operator wrote, by its name or by the digests of this call
    if write.kind != "operator":
        return None
    by_name = write.name in COPIES and len(write.reads) == 1
    for read in write.reads:
        if by_name or (read.bits and read.bits == write.left.bits):
            same = read.tensor is not None and read.tensor.meta.dtype == write.region.dtype
            if same and read.tensor is not None and same_digest(read.tensor.meta, write.region):
                return read
    return None
