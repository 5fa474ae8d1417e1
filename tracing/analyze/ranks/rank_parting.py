"""The event at which some ranks of a job part from the others, and those ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from tracing.analyze.ranks.rank_events import RankEvent

RankPartingKind: TypeAlias = Literal["launch", "lacking", "more", "collective", "altered", "update", "output"]
Groups: TypeAlias = tuple[tuple[tuple[int, ...], str], ...]  # ranks and what they have, the most ranks first


@dataclass(frozen=True, slots=True)
class RankParting:
    """The event at which ranks that did the same no longer do."""

    kind: RankPartingKind
    event: RankEvent  # of the first rank that has it
    groups: Groups
    argument: str = ""  # of a launch; which tensor, of a landmark
    before: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # what those that left did, in order
    outputs: tuple[str, ...] = ()  # of a launch that is another one: what it left differently
    count: int = 1  # launches and landmarks in a row, that are lacking or more

    @property
    def left(self) -> tuple[int, ...]:
        """The ranks that left; none if two groups are the largest."""
        sizes = [len(ranks) for ranks, _ in self.groups]
        if len(sizes) > 1 and sizes[0] == sizes[1]:
            return ()
        return tuple(sorted(rank for ranks, _ in self.groups[1:] for rank in ranks))

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for partings that repeat one another."""
        groups = self.groups if self.kind == "launch" else ()
        return (self.kind, self.event.name, self.argument, self.left, groups)


def groups_of(by_rank: Mapping[int, str]) -> Groups:
    """Groups ranks by their value."""
    by_text: dict[str, list[int]] = defaultdict(list)
    for rank, text in sorted(by_rank.items()):
        by_text[text].append(rank)
    return tuple(
        sorted(((tuple(ranks), text) for text, ranks in by_text.items()), key=lambda one: (-len(one[0]), one))
    )


def joined(partings: Iterator[RankParting]) -> Iterator[RankParting]:
    """Merges consecutive partings at which the same ranks lack events, or have extra ones."""
    held: RankParting | None = None
    for one in partings:
        if held is not None and one.kind == held.kind in ("lacking", "more") and _who(one) == _who(held):
            held = replace(held, count=held.count + 1)
            continue
        if held is not None:
            yield held
        held = one
    if held is not None:
        yield held


def _who(parting: RankParting) -> set[tuple[int, ...]]:
    return {ranks for ranks, _ in parting.groups}
