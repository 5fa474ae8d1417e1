"""The event at which some ranks of a job diverge from the others, and those ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from tracing.analyze.compare.kernel_code import CodeDifference
from tracing.analyze.ranks.operator_arguments import UnlikeArguments
from tracing.analyze.ranks.parameter_writes import Gradient, UnlikeParameterWrites
from tracing.analyze.ranks.rank_events import RankEvent

RankDivergenceKind: TypeAlias = Literal[
    "launch", "missing", "added", "collective", "altered", "update", "output", "operator"
]
Groups: TypeAlias = tuple[tuple[tuple[int, ...], str], ...]  # ranks and their value, the largest group first


@dataclass(frozen=True, slots=True)
class RankDivergence:
    """The first event that is not the same on all ranks."""

    kind: RankDivergenceKind
    event: RankEvent  # of the first rank that has it
    groups: Groups
    argument: str = ""  # of a launch; which tensor, of a landmark
    # latest events of each rank that diverged
    before: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()  # of a launch that differs: what it wrote differently
    code: CodeDifference | None = None  # of the kernels of a launch
    calls: tuple[UnlikeArguments, ...] = ()  # of an update: operators before it
    gradients: Mapping[int, Gradient] = field(default_factory=dict)  # of an update, if not all are reduced
    writes: UnlikeParameterWrites | None = None  # of an update: calls on the gradient that was reduced
    own_writes: UnlikeParameterWrites | None = None  # of an update: calls on the parameter itself
    count: int = 1  # consecutive launches and landmarks that are missing or added

    @property
    def diverged(self) -> tuple[int, ...]:
        """The ranks outside of the largest group; none if two groups are the largest."""
        sizes = [len(ranks) for ranks, _ in self.groups]
        if len(sizes) > 1 and sizes[0] == sizes[1]:
            return ()
        return tuple(sorted(rank for ranks, _ in self.groups[1:] for rank in ranks))

    @property
    def key(self) -> tuple[object, ...]:
        """Equal if one divergence repeats another."""
        groups = self.groups if self.kind == "launch" else ()
        return (self.kind, self.event.name, self.argument, self.diverged, groups)


def groups_of(by_rank: Mapping[int, str]) -> Groups:
    """Groups ranks by their value."""
    by_text: dict[str, list[int]] = defaultdict(list)
    for rank, text in sorted(by_rank.items()):
        by_text[text].append(rank)
    return tuple(
        sorted(((tuple(ranks), text) for text, ranks in by_text.items()), key=lambda one: (-len(one[0]), one))
    )


def joined(divergences: Iterator[RankDivergence]) -> Iterator[RankDivergence]:
    """Merges consecutive divergences at which the same ranks lack events, or have additional ones."""
    held: RankDivergence | None = None
    for one in divergences:
        if held is not None and one.kind == held.kind in ("missing", "added") and _who(one) == _who(held):
            held = replace(held, count=held.count + 1)
            continue
        if held is not None:
            yield held
        held = one
    if held is not None:
        yield held


def _who(divergence: RankDivergence) -> set[tuple[int, ...]]:
    return {ranks for ranks, _ in divergence.groups}
