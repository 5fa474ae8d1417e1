"""Records: facts of a run, each a line of an NDJSON file or part of one.

Lines are JSON, which distinguishes true, 1, 1.0, -0.0 and "text", but lacks inf and nan (msgspec would write
null): such a scalar is {"float": "inf"}, {"float": "-inf"} or {"float": "nan"} on disk, and a float in
memory. Records with scalars are equal if the types and bits of these are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import msgspec

Blob: TypeAlias = str  # name of a file in blobs/: the digest of its content


_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")

Scalar: TypeAlias = bool | int | float | str | None


class NonFinite(msgspec.Struct, frozen=True):
    """A float that JSON lacks, in its form on disk."""

    float: str  # "inf", "-inf", "nan": JSON has no such numbers


if TYPE_CHECKING:
    ScalarField: TypeAlias = Scalar
else:  # what msgspec reads; the record converts it to a float
    ScalarField = Scalar | NonFinite


def plain_scalar(value: object) -> Scalar:
    """A scalar of Python's own types, as of numpy's float64; anything else as text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return str.__str__(value) if isinstance(value, str) else without_addresses(repr(value))


def without_addresses(text: str) -> str:
    """The text of objects without ` at 0x7f...`, which differs between runs."""
    return _ADDRESS.sub("", text)


def to_json(value: Scalar) -> Scalar | NonFinite:
    """A scalar as JSON can hold it."""
    return NonFinite(repr(value)) if isinstance(value, float) and not math.isfinite(value) else value


def from_json(value: Scalar | NonFinite) -> Scalar:
    """A scalar that was read; raises ValueError for a float that is none."""
    return float(value.float) if isinstance(value, NonFinite) else value


def exact(value: Scalar | Mapping[str, Scalar]) -> object:
    """A key that is equal for two scalars, or configurations, if and only if their types and bits are.

    With Python's ==, nan differs from itself, -0.0 equals 0.0, and True equals 1.
    """
    if isinstance(value, Mapping):
        return {name: exact(one) for name, one in value.items()}
    return type(value).__name__, repr(value)


class RecordFile(NamedTuple):
    """The files that hold one kind of record, one file a process."""

    name: str  # "kernels": kernels-<host>-<rank>-<pid>.ndjson
    compressed: bool  # .ndjson.zst: the records come one a launch or one a pass
    segmented: bool = False  # a recording that deletes earlier steps has one such file for each segment

    def file(self, process: str, segment: int | None = None) -> str:
        """The name of the file of a process, "<host>-<rank>-<pid>"; segment None: the only one."""
        part = "" if segment is None else f".{segment:06}"
        return f"{self.name}-{process}{part}.ndjson{'.zst' if self.compressed else ''}"

    def held(self, process: str) -> str:
        """The name of the file of its last lines, which a fatal signal kept from the others."""
        return f"{self.name}-{process}.ndjson.held"


_FILES: dict[type, RecordFile] = {}


class _RecordType(msgspec.StructMeta):
    # takes `file` and the flags from the line that declares a record; msgspec calls no __init_subclass__
    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        file: str = "",
        compressed: bool = False,
        segmented: bool = False,
        **options: Any,
    ) -> _RecordType:
        record = super().__new__(cls, name, bases, namespace, **options)
        if file:
            assert file not in (one.name for one in _FILES.values()), f"two records are in {file}"
            _FILES[record] = RecordFile(file, compressed, segmented)
        return record


class Record(msgspec.Struct, metaclass=_RecordType, frozen=True, omit_defaults=True, gc=False):
    """An immutable fact of a run.

    A record that has lines of its own declares its file, `class Kernel(Record, frozen=True, file="kernels")`;
    `compressed=True` if a run has a line for each launch or pass, and `segmented=True` if lines of earlier
    steps may be deleted. Other records are parts of such lines.
    """

    # no garbage collection: records form no cycles, and hundreds of thousands would keep the collector busy

    def stored(self) -> Record:
        """This record as JSON can hold it."""
        return self


def file_of(kind: type[Record]) -> RecordFile:
    """The files that hold records of one kind; raises KeyError for a record that declares none."""
    return _FILES[kind]


R = TypeVar("R", bound=Record)


class Exact(Record, frozen=True):
    """A record with scalars: nan equals itself, and neither is -0.0 equal to 0.0 nor True to 1."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _bits(self) == _bits(other)

    def __hash__(self) -> int:
        return hash(_bits(self))


def _bits(record: Any) -> bytes:
    return msgspec.json.encode(msgspec.to_builtins(record.stored(), str_keys=True), order="deterministic")


def converted(convert: Callable[[Any], Any], scalars: Mapping[Any, Any]) -> dict[Any, Any]:
    """Scalars by name, each converted by `to_json` or `from_json`."""
    return {name: convert(value) for name, value in scalars.items()}


def set_fields(record: Record, **fields: object) -> None:
    """Set fields of a record that is being made, although it is frozen."""
    for name, value in fields.items():
        msgspec.structs.force_setattr(record, name, value)


def with_fields(record: R, **fields: object) -> R:
    """A copy with other fields; unlike in msgspec's replace, `__post_init__` does not see them."""
    copied = msgspec.structs.replace(record)
    set_fields(copied, **fields)
    return copied
