"""Tensors: their layout, digests, storages, and the contents that a run keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tracing.model.record import Blob, Record


class Digest(Record, frozen=True):
    """The digest of a tensor's elements in logical order, and statistics of their values."""

    bits: str  # 128 bits, 32 hexadecimal digits; position dependent, the same on every device
    tiles: str = ""  # 3 hexadecimal digits for each of up to 8 equal ranges of the elements
    nan: int = 0
    inf: int = 0
    negative_zero: int = 0
    l1: float | None = None  # sum of |x| over the finite elements, 6 digits; None: no magnitude


class TensorMeta(Record, frozen=True):
    """The layout of one tensor argument."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]  # elements
    dtype: str  # torch's name without "torch."
    device: str
    offset: int = 0  # elements from the start of the storage


class Storage(Record, frozen=True, file="storages", segmented=True):
    """A block of memory that a launch or an operator touched.

    An allocator reuses freed memory: two blocks of one process may overlap, one after the other.
    """

    id: int
    address: int
    nbytes: int


class DigestBatch(Record, frozen=True, file="digests", compressed=True, segmented=True):
    """The digests before and after launches, column by column, written when they are known; see `Columns`."""

    launches: Sequence[int]
    patterns: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]  # argument positions before, and after
    pattern: Sequence[int]  # of each launch
    bits: str
    tiles: str
    ranges: Sequence[int]
    l1: Sequence[float | None]
    special: Mapping[int, tuple[int, int, int]] = {}


class DigestLine(Record, frozen=True):
    """The digests before and after one launch; keys are argument positions."""

    launch: int
    before: Mapping[int, Digest]  # of every tensor argument that was digested
    after: Mapping[int, Digest]  # of every one that it may have written


class PackedBlob(Record, frozen=True, file="packed", compressed=True):
    """The position of a blob that is compressed together with others: a part of one pack's content."""

    blob: Blob
    pack: str  # name of a file in blobs/
    start: int  # bytes, of the pack's uncompressed content
    size: int


KEPT_IN_MEMORY = 1 << 30  # bytes of tensors that a recording holds before it writes some, by default


KEPT_ON_DISK = 16 << 30  # bytes of tensors that a recording writes at most, by default


class KeptTensor(Record, frozen=True, file="outputs", segmented=True):
    """The content of one tensor argument, before or after one launch."""

    launch: int
    position: int  # of the argument
    side: Literal["before", "after"]
    blob: Blob  # a safetensors file with one tensor called "tensor"
