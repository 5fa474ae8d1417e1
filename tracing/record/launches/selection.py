"""Parses the options that select which launches are recorded."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tracing.environment import world_size
from tracing.errors import Problem
from tracing.model import Selection, StepSelection

EVERYTHING = Selection()
EVERY_STEP = StepSelection()
NOTHING = Selection(launches=(0, 0))


def selection_of(
    kernels: Sequence[str] | None, launches: str, phases: Sequence[str], ranks: Sequence[int] | None
) -> Selection:
    """The selection for the given options; raises Problem for a malformed range, or one without a launch."""
    chosen = parse_range(launches) if launches != ":" else None
    if chosen is not None and chosen[0] >= chosen[1]:
        raise Problem(f"--launches {launches} selects none", "give START:STOP with START below STOP: 10:20")
    if ranks and min(ranks) >= (size := world_size()):
        remedy = "leave --rank out, or start the ranks with torchrun"
        raise Problem(f"--rank {min(ranks)} selects none: the ranks are 0 to {size - 1}", remedy)
    return Selection(tuple(kernels or ()), chosen, tuple(phases), tuple(ranks or ()))


def of_rank(selection: Selection, rank: int) -> Selection:
    """The selection for the process of a rank."""
    if selection.ranks and rank not in selection.ranks:
        return NOTHING
    chosen = msgspec.structs.replace(selection, ranks=())
    return EVERYTHING if chosen == EVERYTHING else chosen


def parse_range(text: str) -> tuple[int, int]:
    """`10:20` is launches 10 to 19, `10:` all from 10, `:20` the first 20; raises Problem for other text."""
    start, colon, stop = text.partition(":")
    if not colon or not (start or "0").isdecimal() or not (stop or "0").isdecimal():
        raise Problem(f"{text!r} is not a range of launches", "give it as START:STOP, --launches 10:20")
    return int(start or 0), int(stop) if stop else 1 << 62
