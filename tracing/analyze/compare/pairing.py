"""Which launches of two processes are one another's partners, and whose results differ."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["equal", "differs", "loose"]

_KEPT = 1 << 16  # pairs, and results that differ, that are remembered one by one


class Pairing:
    """Partners by index, and what became of the arguments that they wrote.

    "loose": two results may differ only where memory was never written.
    """

    def __init__(self, equal: int) -> None:
        """equal -- the launches before this index are partners of those with the same index, and equal"""
        self._equal = equal
        self._partners: OrderedDict[int, int] = OrderedDict()
        self._in_a: dict[int, int] = {}
        self._status: OrderedDict[tuple[int, int], Status] = OrderedDict()

    def add(self, a: int, b: int) -> None:
        """Launch `a` of run a and launch `b` of run b are partners."""
        self._partners[a] = b
        self._in_a[b] = a
        if len(self._partners) > _KEPT:
            _, forgotten = self._partners.popitem(last=False)
            self._in_a.pop(forgotten, None)

    def partner(self, a: int) -> int | None:
        """The partner of a launch of run a in run b; None: it has none, or none yet."""
        return a if a < self._equal else self._partners.get(a)

    def partner_in_a(self, b: int) -> int | None:
        """The partner of a launch of run b in run a; None: it has none, or none yet."""
        return b if b < self._equal else self._in_a.get(b)

    def mark(self, a: int, position: int, status: Status) -> None:
        """Say what became of an argument that a launch of run a wrote."""
        self._status[a, position] = status
        if len(self._status) > _KEPT:
            self._status.popitem(last=False)

    def status(self, a: int, position: int) -> Status:
        """What became of it."""
        return self._status.get((a, position), "equal")
