"""Which launches are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tracing.errors import Problem


@dataclass(frozen=True, slots=True)
class Selection:
    """Launches by kernel, place in the program and phase; what is left empty excludes nothing."""

    kernels: tuple[str, ...] = ()  # globs of kernel names
    launches: range | None = None  # in the order of the whole program, from 0
    phases: tuple[str, ...] = ()

    def wants(self, index: int, kernel: str, phase: str) -> bool:
        """Whether a launch is recorded."""
        return (
            (self.launches is None or index in self.launches)
            and (not self.phases or phase in self.phases)
            and (not self.kernels or any(fnmatchcase(kernel, glob) for glob in self.kernels))
        )


EVERYTHING = Selection()
NOTHING = Selection(launches=range(0))


def selection_of(
    kernels: Sequence[str] | None,
    launches: str,
    phases: Sequence[str],
    ranks: Sequence[int] | None,
    rank: int,
) -> Selection:
    """What a process of this rank records, from what was typed; raises Problem for a malformed range."""
    if ranks and rank not in ranks:
        return NOTHING
    chosen = Selection(
        tuple(kernels or ()), parse_range(launches) if launches != ":" else None, tuple(phases)
    )
    return EVERYTHING if chosen == EVERYTHING else chosen


def parse_range(text: str) -> range:
    """`10:20` is launches 10 to 19, `10:` all from 10, `:20` the first 20; raises Problem for other text."""
    start, colon, stop = text.partition(":")
    if not colon or not (start or "0").isdecimal() or not (stop or "0").isdecimal():
        raise Problem(f"{text!r} is not a range of launches", "give it as FIRST:BEHIND, --launches 10:20")
    return range(int(start or 0), int(stop) if stop else 1 << 62)
