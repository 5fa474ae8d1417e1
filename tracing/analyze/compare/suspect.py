"""Finds the launch that a divergence accuses, so that it can be replayed."""

from __future__ import annotations

from tracing.analyze.compare.cause_kinds import (
    Host,
    OperatorCause,
    OtherTensor,
    Overrun,
    StreamCause,
    Uninitialised,
    WrittenElsewhere,
)
from tracing.analyze.compare.divergence_kinds import Divergence, InputDiffers, OneSided
from tracing.errors import Problem
from tracing.store import Run
from tracing.store.recorded_launch import find_launch, same_call


def suspect(divergence: Divergence, runs: tuple[Run, Run]) -> tuple[int, int]:
    """The accused launch, in either run; raises Problem, with the reason, if none is accused."""
    pair = divergence.pair
    if isinstance(divergence, OneSided) or pair.a is None or pair.b is None:
        raise Problem("one of the runs does not have this launch")
    if not isinstance(divergence, InputDiffers) or isinstance(divergence.cause, Uninitialised):
        return pair.a.index, pair.b.index
    cause = divergence.cause
    if isinstance(cause, OperatorCause):
        operator = cause.names[1] or cause.names[0]
        raise Problem(f"what differs was written by {operator}, which is no kernel of Triton")
    if isinstance(cause, Host):
        raise Problem("no kernel wrote what differs: it comes from outside of Triton")
    if isinstance(cause, (OtherTensor, WrittenElsewhere)):
        raise Problem("the program passes another tensor to a kernel")
    if not isinstance(cause, (Overrun, StreamCause)):
        raise Problem(cause.why)
    return _partners(cause.writer.a, cause.writer.b, divergence.pair.rank, runs)


def _partners(a: int | None, b: int | None, rank: int, runs: tuple[Run, Run]) -> tuple[int, int]:
    if a is not None and b is not None:
        return a, b
    index, here, there = (a, *runs) if a is not None else (b, runs[1], runs[0])
    assert index is not None
    process, launch = find_launch(here, index, rank)
    partner = same_call(here, process, launch, there)
    return (index, partner) if a is not None else (partner, index)
