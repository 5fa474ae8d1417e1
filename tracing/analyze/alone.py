"""Is a kernel deterministic by itself? What replays of one launch left, and which launch to replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tracing.analyze.compare.divergence import Divergence
from tracing.analyze.determinism import Rate
from tracing.errors import Problem


@dataclass(frozen=True, slots=True)
class Changed:
    """The elements of one argument that differ."""

    argument: str
    count: int
    of: int
    ranges: tuple[tuple[int, int], ...]  # [first, behind) in logical order; the first few
    largest: float  # |difference| of two finite elements


@dataclass(frozen=True, slots=True)
class Replays:
    """One launch, made again several times from the same bytes."""

    outcomes: tuple[Mapping[str, str], ...]  # of each replay, the first too: bits by argument
    changed: tuple[Changed, ...]  # in any replay, against the first
    unwritten: tuple[Changed, ...]  # what depends on memory that was not among the kept inputs

    @property
    def rate(self) -> Rate:
        """How many differ from the first."""
        first, *others = self.outcomes
        return Rate(sum(one != first for one in others), len(others), "replays")

    def left(self, bits: Mapping[str, str]) -> int:
        """How many left these bits."""
        return sum(one == bits for one in self.outcomes)


@dataclass(frozen=True, slots=True)
class Alone:
    """What was seen of a kernel by itself, and of another that should compute the same."""

    device: str  # "": Triton's interpreter
    a: Replays
    b: Replays | None  # on the inputs of a
    apart: tuple[Changed, ...]  # where the first replay of b differs from that of a


@dataclass(frozen=True, slots=True)
class Suspect:
    """The launch to replay."""

    index: int  # in run a
    other: int | None = None  # in run b: the same launch in another configuration


def suspect(found: Divergence) -> Suspect:
    """The launch that a divergence accuses; raises Problem, with the reason, if it accuses none."""
    if found.kind == "output":
        return Suspect(found.index)
    if found.kind == "launch" and found.other is not None:
        if found.other.kernel_name == found.launch.kernel_name:
            return Suspect(found.index, found.other.index)
        raise Problem("the two runs launch different kernels here")
    if found.kind in ("missing", "added", "end", "launch"):
        raise Problem("one of the runs does not have this launch")
    if found.operator is not None:
        raise Problem(f"what differs was written by {found.operator}, which is no kernel of Triton")
    if found.producer is None or found.producer.changed_in:
        raise Problem("no kernel wrote what differs: it comes from outside of Triton")
    if found.producer.only_in_a:
        raise Problem("one of the runs does not have the launch that wrote what differs")
    return Suspect(found.producer.index)


def same_arguments(a: Mapping[str, object], b: Mapping[str, object]) -> bool:
    """Whether one kernel can be given the inputs of the other: tensors of one name, shape and dtype.

    a, b -- the "tensors" of what `again` tells of two launches
    """
    return _kinds(a) == _kinds(b)


def _kinds(tensors: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    return {name: (one["shape"], one["dtype"]) for name, one in tensors.items() if isinstance(one, Mapping)}
