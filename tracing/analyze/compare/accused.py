"""Names the culprit of a divergence: its kind, and the kernel or operator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tracing.analyze.compare.cause_kinds import (
    Cause,
    Host,
    OperatorCause,
    OtherTensor,
    Overrun,
    StreamCause,
    Uninitialised,
    WhichRuns,
    Writer,
    WrittenElsewhere,
)
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    LaunchDiffers,
    LaunchPair,
    OneSided,
    OrderDiffers,
    ReadOutside,
    argument_of,
)

AccusedKind: TypeAlias = Literal[
    "code", "configuration", "winner", "kernel", "operator", "host", "uninitialised", "out of bounds",
    "order", "missing", "start", "outcome", "result", "unknown",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Accused:
    """The culprit, as far as the run proves it."""

    kind: AccusedKind
    name: str  # of the kernel or the operator; empty: the host
    argument: str | None = None
    a: int | None = None  # index of the launch in run a
    b: int | None = None
    runs: WhichRuns = "ab"  # the runs in which it acted differently
    certain: bool = True
    through: tuple[str, ...] = ()  # operators that copied the bytes, or computed with them


def accused(divergence: Divergence) -> Accused:
    """The culprit that a divergence accuses."""
    pair, name = divergence.pair, divergence.pair.launch.kernel_name
    if isinstance(divergence, InputDiffers):
        return accused_of(divergence.cause, Accused("kernel", name, argument_of(divergence), *_indices(pair)))
    if isinstance(divergence, LaunchDiffers):
        new_code = divergence.code or divergence.other_kernel
        kind: AccusedKind = "code" if new_code else "winner" if divergence.tuned else "configuration"
        return Accused(kind, name, None, *_indices(pair))
    if isinstance(divergence, OneSided):
        return Accused("missing", name, None, *_indices(pair), runs="b" if pair.a is None else "a")
    if isinstance(divergence, OrderDiffers):
        return Accused("order", name, divergence.argument, *_indices(pair))
    if isinstance(divergence.doubt, ReadOutside):
        return Accused("out of bounds", name, divergence.doubt.argument, *_indices(pair))
    certain = not divergence.doubt
    return Accused(
        "kernel" if certain else "unknown", name, argument_of(divergence), *_indices(pair), certain=certain
    )


def accused_of(cause: Cause | None, reader: Accused) -> Accused:
    """The culprit that a cause accuses.

    reader -- the launch that shows the difference; accused if it is itself the cause
    """
    if isinstance(cause, OperatorCause):
        name = cause.names[1] or cause.names[0]
        return Accused("operator", name, runs=cause.runs, certain=cause.proven, through=cause.through)
    if isinstance(cause, Host):
        after = (cause.writer.a, cause.writer.b) if cause.writer else (None, None)
        return Accused(
            "host", "", None, *after, cause.runs or "ab", cause.proven and bool(cause.runs), cause.through
        )
    if isinstance(cause, OtherTensor):
        return replace(reader, kind="configuration", certain=cause.proven)
    if isinstance(cause, Uninitialised):
        return replace(reader, kind="uninitialised", through=cause.through)
    if isinstance(cause, WrittenElsewhere):
        return _of_writer("configuration", cause.writer, "ab", cause.through)
    if isinstance(cause, Overrun):
        return _of_writer("out of bounds", cause.writer, cause.runs, cause.through)
    if isinstance(cause, StreamCause):
        return _of_writer("order", cause.writer, "ab", ())
    return replace(reader, kind="unknown", certain=False)


def _of_writer(kind: AccusedKind, writer: Writer, runs: WhichRuns, through: tuple[str, ...]) -> Accused:
    return Accused(kind, writer.kernel_name, writer.argument, writer.a, writer.b, runs, through=through)


def _indices(pair: LaunchPair) -> tuple[int | None, int | None]:
    return (pair.a.index if pair.a else None), (pair.b.index if pair.b else None)
