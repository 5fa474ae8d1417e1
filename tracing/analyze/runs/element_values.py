"""List the elements of small tensors in which two launches differ."""

from __future__ import annotations

from typing import Literal

from tracing.model import Scalar, Values
from tracing.store import Run, rank_of


def differing_values(
    runs: tuple[Run, Run],
    rank: int,
    launches: tuple[int, int],
    position: int,
    side: Literal["before", "after"],
) -> list[tuple[int, Scalar, Scalar]]:
    """Index and both values of every element that differs, where both runs kept them; else nothing.

    launches -- the index of the launch in each run
    """
    a, b = (_values(run, rank, launch, position, side) for run, launch in zip(runs, launches, strict=True))
    if a is None or b is None or len(a) != len(b):
        return []
    pairs = enumerate(zip(a, b, strict=True))
    return [(n, of_a, of_b) for n, (of_a, of_b) in pairs if repr(of_a) != repr(of_b)]


def _values(run: Run, rank: int, launch: int, position: int, side: str) -> tuple[Scalar, ...] | None:
    for process in run.processes(Values):
        if rank_of(process) == rank:
            for one in run.view(process, Values, Values):
                if (one.launch, one.position, one.side) == (launch, position, side):
                    return one.values
    return None
