"""The rows of the tables of runs: each field is a column, and its annotation the DuckDB type."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

Integer: TypeAlias = Annotated[int, "integer"]  # of 32 bits
_KINDS = {str: "varchar", int: "bigint", float: "double", bool: "boolean"}


class LaunchRow(msgspec.Struct, frozen=True):
    """A launch; `launch_table` joins these columns in SQL."""

    run: str
    rank: Integer
    index: int
    kernel: str
    hash: str
    target: str
    grid: tuple[Integer, ...]
    num_warps: Integer
    num_stages: Integer
    num_ctas: Integer
    constants: Mapping[str, str]
    stream: int
    device: str
    phase: str
    finished: bool


class ArgumentRow(msgspec.Struct, frozen=True):
    """An argument of a launch; digests and statistics are those after the launch, or else before it."""

    run: str
    rank: Integer
    launch: int
    position: Integer
    name: str
    declared: str
    dtype: str | None
    shape: tuple[int, ...] | None
    stride: tuple[int, ...] | None
    storage: int | None
    value: str | None
    before: str | None
    after: str | None
    modified: bool
    l1: float | None
    nan: int | None
    inf: int | None
    writer: str | None


class TimeRow(msgspec.Struct, frozen=True):
    """The duration of a launch, in microseconds."""

    run: str
    rank: Integer
    launch: int
    wall_us: float
    device_us: float | None


class PassRow(msgspec.Struct, frozen=True):
    """A compiler pass over a kernel."""

    run: str
    kernel: str
    hash: str
    target: str
    index: Integer
    stage: str
    name: str
    pipeline: str
    changed: bool
    ended: bool
    wall_ms: float | None


class DivergenceRow(msgspec.Struct, frozen=True):
    """A difference of a run from the first run, `reference`."""

    run: str
    reference: str
    rank: Integer
    kind: str
    index: int
    kernel: str
    argument: str | None
    a: str | None
    b: str | None
    accused: str
    accused_name: str
    accused_index: int | None
    runs: str
    certain: bool


class ResultRow(msgspec.Struct, frozen=True):
    """A value of a case's results."""

    run: str
    rank: Integer
    name: str
    type: str
    value: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None
    bits: str | None = None
    l1: float | None = None
    nan: int | None = None
    inf: int | None = None


class WinnerRow(msgspec.Struct, frozen=True):
    """The configuration that an autotuner chose."""

    run: str
    rank: Integer
    tuner: str
    kernel: str
    source: str
    key: tuple[str, ...]
    config: Mapping[str, str]
    how: str
    candidates: Integer


class LandmarkRow(msgspec.Struct, frozen=True):
    """A collective, or an update of parameters."""

    run: str
    rank: Integer
    index: int
    launch: int
    kind: str
    name: str
    ordinal: int
    ranks: tuple[Integer, ...]
    inputs: tuple[str, ...] | None
    results: tuple[str, ...] | None


TABLES: Mapping[str, type[msgspec.Struct]] = {
    "launches": LaunchRow,
    "arguments": ArgumentRow,
    "times": TimeRow,
    "passes": PassRow,
    "divergences": DivergenceRow,
    "results": ResultRow,
    "winners": WinnerRow,
    "landmarks": LandmarkRow,
}


def _kind(hint: Any) -> str:
    # the DuckDB type of an annotation
    if get_origin(hint) is Annotated:
        return str(get_args(hint)[1])
    if get_origin(hint) in (Union, types.UnionType):
        return next(_kind(one) for one in get_args(hint) if one is not type(None))
    if get_origin(hint) is tuple:
        return f"{_kind(get_args(hint)[0])}[]"
    return _KINDS.get(hint) or "map(varchar, varchar)"


COLUMNS: Mapping[str, Mapping[str, str]] = {
    table: {name: _kind(hint) for name, hint in get_type_hints(row, include_extras=True).items()}
    for table, row in TABLES.items()
}
