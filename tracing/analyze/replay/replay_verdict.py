"""Decide from the replays of one launch why two runs differ in it.

- a race inside of the launch: replays on the same bytes differ from each other;
- its code differs: on the same inputs the launches of a and b write different results, reproducibly;
- its inputs differ: on the inputs of a it writes a different result than on those of b, with either code;
- it depends on its surroundings: all replays reproduce one run's results, and none the other's, so other
  streams, adjacent memory or memory outside of its arguments decide; or some elements depend on memory whose
  content was not kept;
- it is not decided: the recorded bits include elements that depend on such memory, or that are not written;
- it was not reproduced: no replay writes the results of a run, or the inputs do not recur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tracing.analyze.runs.determinism import Rate
from tracing.digest.columns import RANGE
from tracing.model import DifferingElements, Digest, ReplayResult, ReplaySeries, Side

# recorded outputs of the launch in each run, by argument
Recorded: TypeAlias = Mapping[Side, Mapping[str, Digest]]


@dataclass(frozen=True, slots=True)
class ReplaysDiffer:
    """Replays differ from each other."""

    series: tuple[ReplaySeries, ...]  # in which they do


@dataclass(frozen=True, slots=True)
class CodeDiffers:
    """The launches of both runs write different results on the same inputs."""

    inputs: Side
    elements: tuple[DifferingElements, ...]


@dataclass(frozen=True, slots=True)
class InputsDiffer:
    """The difference comes from the inputs."""

    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NeedsSurroundings:
    """Replays reproduce the results of one run, and never those of the other."""

    appeared: Side
    missing: Side


@dataclass(frozen=True, slots=True)
class NeedsOtherMemory:
    """The runs differ, and elements depend on memory whose content was not kept."""


@dataclass(frozen=True, slots=True)
class InputsChanged:
    """The inputs that a run recorded do not recur, and its results do not either."""

    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reproduced:
    """Replays reproduce the recorded results, of both runs if there are two."""


@dataclass(frozen=True, slots=True)
class NotReproduced:
    """Replays reproduce the results of neither run."""


@dataclass(frozen=True, slots=True)
class NothingRecorded:
    """Replays agree with each other; no run has digests of the launch's results."""


@dataclass(frozen=True, slots=True)
class UndecidedReplay:
    """Undecided, because some elements depend on memory that was not kept."""


@dataclass(frozen=True, slots=True)
class NotComparable:
    """Replays agree; the recorded bits include unwritten elements whose content is not known."""


ReplayVerdict: TypeAlias = (
    ReplaysDiffer
    | CodeDiffers
    | InputsDiffer
    | InputsChanged
    | NeedsSurroundings
    | NeedsOtherMemory
    | Reproduced
    | NotReproduced
    | NothingRecorded
    | UndecidedReplay
    | NotComparable
)


def verdict(
    result: ReplayResult, recorded: Recorded, other_inputs: Sequence[str], changed_inputs: Sequence[str] = ()
) -> ReplayVerdict:
    """The verdict of the replays.

    recorded       -- the recorded digests of each run
    other_inputs   -- the arguments whose contents differ between the two runs
    changed_inputs -- the arguments whose contents changed when they were recorded once more
    """
    if racing := tuple(one for one in result.series if varies(one)):
        return ReplaysDiffer(racing)
    for difference in result.differences:
        a, b = (result.series[number] for number in difference.series)
        if a.inputs == b.inputs:
            return CodeDiffers(a.inputs, difference.elements)
    own = {one.inputs: one for one in sorted(result.series, key=lambda one: one.launched == one.inputs)}
    left = {
        side: left_as(own.get(side, result.series[0]), bits, side) for side, bits in recorded.items() if bits
    }
    if changed_inputs and not (left and all(left.values())):
        return InputsChanged(tuple(changed_inputs))
    if other_inputs and all(left.values()) and result.differences:
        return InputsDiffer(tuple(other_inputs))
    return _of_one_result(left, recorded, depends=any(one.unwritten for one in result.series))


def varies(series: ReplaySeries) -> bool:
    """True if replays differ from each other."""
    return any(outcome != series.outcomes[0] for outcome in series.outcomes)


def rate(series: ReplaySeries) -> Rate:
    """The rate of replays that differ from the first."""
    first, *others = series.outcomes
    return Rate(sum(one != first for one in others), len(others), "further replays")


def left_as(series: ReplaySeries, recorded: Mapping[str, Digest], side: Side | None = None) -> int | None:
    """The number of replays with the recorded results; None if the results cannot be compared.

    side -- the run that recorded the results; None: that of the replayed launch
    """
    completed = series.completed if side in (None, series.launched) else ()
    depending = {one.argument for one in series.unwritten}
    exact = {name for name in completed if name not in depending}
    written = {name: ranges for name, ranges in series.written.items() if name not in exact}
    matches = [_matches(outcome, recorded, written) for outcome in series.outcomes]
    return None if None in matches else sum(matches)  # type: ignore[arg-type]


def _matches(
    outcome: Mapping[str, Digest], recorded: Mapping[str, Digest], written: Mapping[str, Sequence[int]]
) -> bool | None:
    known = [_alike(outcome[name], bits, written.get(name)) for name, bits in recorded.items()]
    return False if False in known else None if None in known else True


def _alike(left: Digest, recorded: Digest, written: Sequence[int] | None) -> bool | None:
    # written: the ranges whose elements depend on no other memory; None: all ranges
    if left.bits == recorded.bits:
        return True
    if written is None:
        return False
    ranges = [(one[RANGE * n : RANGE * n + RANGE] for one in (left.tiles, recorded.tiles)) for n in written]
    return all(a == b for a, b in ranges) if ranges else None


def _of_one_result(left: Mapping[Side, int | None], recorded: Recorded, *, depends: bool) -> ReplayVerdict:
    # all replays have one result; left: the number that reproduces each run
    # depends: elements that the launch writes depend on memory whose content was not kept
    if not left:
        return NothingRecorded()
    appeared = [side for side, count in left.items() if count]
    missing = [side for side, count in left.items() if count == 0]
    if appeared and missing:
        return NeedsSurroundings(appeared[0], missing[0])
    if missing:
        return NotReproduced()
    if _differ(recorded):
        return NeedsOtherMemory() if depends else NotComparable()
    if None in left.values():
        return UndecidedReplay() if depends else NotComparable()
    return Reproduced()


def _differ(recorded: Recorded) -> bool:
    bits = [{name: one.bits for name, one in left.items()} for left in recorded.values()]
    return any(one != bits[0] for one in bits)
