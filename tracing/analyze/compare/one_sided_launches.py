"""Collects launches in a row that only one run has into one difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.analyze.compare.divergence_kinds import LaunchPair, OneSided
from tracing.analyze.compare.pairing import Pairing
from tracing.analyze.compare.timeline.timeline_step import TimelineStep

RunIndex: TypeAlias = Literal[0, 1]


@dataclass(slots=True)
class _Gap:
    # launches in a row that only one run has
    side: RunIndex
    first: TimelineStep
    count: int = 0
    changed: bool = False


class OneSidedLaunches:
    """The launches without a partner, of one process of each run."""

    def __init__(
        self,
        pairing: Pairing,
        launches: Callable[[TimelineStep | None, TimelineStep | None], LaunchPair],
    ) -> None:
        """launches -- joins a launch of each run with the facts that a divergence states"""
        self._pairing, self._launches = pairing, launches
        self._gap: _Gap | None = None

    @property
    def side(self) -> RunIndex | None:
        """The run that has the launches of the gap; None: no gap is open."""
        return self._gap.side if self._gap is not None else None

    def add(self, step: TimelineStep, side: RunIndex) -> Iterator[OneSided]:
        """Add a launch that only one run has; returns the difference that it completes."""
        if self._gap and self._gap.side != side:
            yield from self.ended()
        if self._gap is None:
            self._gap = _Gap(side, step)
        self._gap.count += 1
        self._gap.changed |= _changed(step)
        self._pairing.unpaired(step.index, side)

    def ended(self, *, last: bool = False) -> Iterator[OneSided]:
        """The difference that ends here, if one does.

        last -- the other run has ended
        """
        if self._gap is None:
            return
        gap, self._gap = self._gap, None
        pair = self._launches(*((gap.first, None) if gap.side == 0 else (None, gap.first)))
        yield OneSided(pair, gap.count, last, gap.changed)


def _changed(step: TimelineStep) -> bool:
    # whether a launch changed memory, as far as digests show
    written = [n for n, arg in enumerate(step.signature.args) if arg.writes]
    bits = [(step.row.digest(n, "before"), step.row.digest(n, "after")) for n in written]
    return any(before != after or not after for before, after in bits)
