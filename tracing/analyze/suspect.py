"""Which launch a divergence accuses, so that it can be replayed."""

from __future__ import annotations

from tracing.analyze.divergence import Divergence
from tracing.errors import Problem
from tracing.store import Run
from tracing.store.recorded_launch import find_launch, same_call


def suspect(found: Divergence, runs: tuple[Run, Run]) -> tuple[int, int]:
    """The accused launch, in either run; raises Problem, with the reason, if none is accused."""
    if found.kind == "output" or (found.kind == "launch" and found.other is not None):
        assert found.other is not None
        return found.index, found.other.index
    if found.kind in ("missing", "added", "end", "launch"):
        raise Problem("one of the runs does not have this launch")
    if found.operator is not None:
        raise Problem(f"what differs was written by {found.operator}, which is no kernel of Triton")
    if found.producer is None or found.producer.changed_in:
        raise Problem("no kernel wrote what differs: it comes from outside of Triton")
    if found.producer.only_in_a:
        raise Problem("one of the runs does not have the launch that wrote what differs")
    process, launch = find_launch(runs[0], found.producer.index, found.rank)
    return launch.index, same_call(runs[0], process, launch, runs[1])
