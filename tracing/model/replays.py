"""Launches that are replayed, and the results of the replays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.model.record import Record
from tracing.model.results import Outcome
from tracing.model.tensors import Digest


@dataclass(frozen=True, slots=True)
class Replacement:
    """The replacement of a launch of the program."""

    module: str  # Python text that defines KERNEL, CONSTANTS, OPTIONS, and perhaps FIELDS
    grid: tuple[int, int, int]
    own_source: str  # digest of the recorded launch of the program: a different launch is not replaced
    own_grid: tuple[int, int, int]
    eager: bool = False  # executed by Triton's interpreter, on the host


Side: TypeAlias = Literal["a", "b"]  # one of two runs


class DifferingElements(Record, frozen=True):
    """The elements of one argument that differ."""

    argument: str
    count: int
    of: int
    ranges: tuple[tuple[int, int], ...]  # START:STOP in logical order; the first few
    largest: float  # |difference| of two finite elements


class ReplaySeries(Record, frozen=True):
    """One launch executed several times on the same bytes."""

    launched: Side  # the run whose launch is replayed: code, constants, scalars, grid and layout
    inputs: Side  # the run whose contents are the inputs
    outcomes: tuple[Mapping[str, Digest], ...]  # outputs of each replay, by argument; the first one included
    varying: tuple[DifferingElements, ...]  # elements that differ in any replay from the first
    unwritten: tuple[DifferingElements, ...]  # elements that depend on memory whose content was not kept
    # of arguments in `unwritten` and `untouched`: the ranges of `Digest.tiles` without them
    written: Mapping[str, tuple[int, ...]]
    untouched: tuple[DifferingElements, ...] = ()  # elements of unkept content that the launch does not write
    completed: tuple[str, ...] = ()  # arguments whose untouched elements hold what `launched` recorded


class SeriesDifference(Record, frozen=True):
    """The difference between the first replays of two series."""

    series: tuple[int, int]
    elements: tuple[DifferingElements, ...]


class ReplayResult(Record, frozen=True):
    """The results of replays of one launch."""

    device: str  # the name of the GPU; empty: Triton's interpreter
    series: tuple[ReplaySeries, ...]
    differences: tuple[SeriesDifference, ...]  # of the series that differ


class SwapResult(Record, frozen=True):
    """The results of a case that ran with launches replaced."""

    results: Mapping[str, str]  # the identity of each result's value
    outcome: Outcome
    refused: str = ""  # the kernel that could not be replaced; the reason is the outcome's detail
