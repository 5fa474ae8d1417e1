"""The collectives that leave equal bits on all ranks of their group."""

from __future__ import annotations

_ALIKE = ("allreduce", "broadcast", "allgather", "_allgather", "all_reduce", "all_gather")


def leaves_alike(name: str) -> bool:
    """True if a collective leaves equal bits on all ranks of its group."""
    library, _, operator = name.partition("::")
    return library in ("c10d", "_c10d_functional") and operator.startswith(_ALIKE)
