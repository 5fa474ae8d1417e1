"""Find arguments that all ranks read with equal bits first, and with unequal bits later.

An update of parameters without an optimizer of torch is no landmark: this shows that it differed. It is no
proof, since an accumulator of each rank's own data also begins with equal bits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from tracing.analyze.compare.signature_pair import Slot
from tracing.analyze.ranks.rank_launches import RankLaunch
from tracing.model import CallSite

_Argument: TypeAlias = tuple[str, CallSite | None, str]  # kernel, the line that launches it, argument


@dataclass(slots=True)
class LostEquality:
    """The arguments of the launches that were seen, in launch order."""

    _equal: dict[_Argument, int] = field(default_factory=dict)  # the first launch that read equal bits
    _lost: dict[_Argument, tuple[int, int]] = field(default_factory=dict)

    def see(self, launch: RankLaunch, unequal: Collection[Slot]) -> None:
        """Note the inputs of a launch, of which some are not equal on all ranks."""
        index = launch.first.launch
        for slot in launch.slots:
            argument = launch.first.name, launch.first.site, launch.name(slot)
            if slot.side == "before" and slot not in unequal:
                self._equal.setdefault(argument, index)
            elif slot.side == "before" and argument in self._equal:
                self._lost.setdefault(argument, (self._equal[argument], index))

    def notes(self) -> Iterator[str]:
        """One sentence for each argument."""
        for (kernel, _, argument), (first, later) in self._lost.items():
            yield f"{argument} of {kernel}: equal on all ranks at launch #{first}, not at #{later}"
