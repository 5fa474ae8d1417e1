"""Collectives: operators in which the ranks of a job take part, and the arguments that they exchange."""

from __future__ import annotations

FUNCTIONAL = "_c10d_functional::"

# Inputs are argument 1 and results argument 0; of all others both are argument 0.
TWO_SIDED = ("allgather", "_allgather", "reduce_scatter", "_reduce_scatter", "alltoall", "gather", "scatter")
_POINT_TO_POINT = ("send", "recv", "barrier", "monitored_barrier", "isend", "irecv", "batch_p2p", "check_for")


def is_collective(name: str) -> bool:
    """True for an operator in which all ranks of a group take part: "c10d::allreduce_"."""
    library, _, operator = name.partition("::")
    return library in ("c10d", "_c10d_functional") and not operator.startswith((*_POINT_TO_POINT, "_wrap"))
