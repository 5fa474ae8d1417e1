"""Keeps the pairs of launches of two processes, and the results that differ."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["equal", "differs", "loose"]

_KEPT = 1 << 16  # pairs, and results that differ, that are remembered one by one


class Pairing:
    """Partners by index, and the state of the arguments that they wrote.

    "loose": two results may differ only where memory was never written.
    """

    def __init__(self) -> None:
        self._equal = 0  # launches below have a partner of the same index, unless another one is known
        self._partners: OrderedDict[int, int] = OrderedDict()
        self._in_a: dict[int, int] = {}
        self._unpaired: tuple[OrderedDict[int, None], OrderedDict[int, None]] = (OrderedDict(), OrderedDict())
        self._accused: set[tuple[int, str]] = set()
        self._accused_calls: set[tuple[str, str, int]] = set()
        self._status: OrderedDict[tuple[int, int], Status] = OrderedDict()

    def equal_until(self, index: int) -> None:
        """Pair each earlier launch that was not added with the launch of the same index."""
        self._equal = index

    def add(self, a: int, b: int) -> None:
        """Launch `a` of run a and launch `b` of run b are partners."""
        self._partners[a] = b
        self._in_a[b] = a
        if len(self._partners) > _KEPT:
            _, forgotten = self._partners.popitem(last=False)
            self._in_a.pop(forgotten, None)

    def unpaired(self, index: int, side: Literal[0, 1]) -> None:
        """A launch of run a (side 0) or b has no partner."""
        self._unpaired[side][index] = None
        if len(self._unpaired[side]) > _KEPT:
            self._unpaired[side].popitem(last=False)

    def partner(self, a: int) -> int | None:
        """The partner of a launch of run a in run b; None: it has none, or none yet."""
        return self._partner_in(a, self._partners, 0)

    def partner_in_a(self, b: int) -> int | None:
        """The partner of a launch of run b in run a; None: it has none, or none yet."""
        return self._partner_in(b, self._in_a, 1)

    def _partner_in(self, index: int, known: dict[int, int], side: Literal[0, 1]) -> int | None:
        if index in known:
            return known[index]
        return index if index < self._equal and index not in self._unpaired[side] else None

    def accuse(self, a: int, argument: str) -> None:
        """Note that a launch of run a wrote this argument, and was passed another tensor as it."""
        self._accused.add((a, argument))

    def is_accused(self, a: int, argument: str) -> bool:
        """True if `accuse` was called for this launch."""
        return (a, argument) in self._accused

    def accuse_call(self, name: str, arguments: str, number: int) -> None:
        """Note that the call of an operator with this number wrote another tensor in one run."""
        self._accused_calls.add((name, arguments, number))

    def is_accused_call(self, name: str, arguments: str, number: int) -> bool:
        """True if `accuse_call` was called for this call."""
        return (name, arguments, number) in self._accused_calls

    def mark(self, a: int, position: int, status: Status) -> None:
        """Set the state of an argument that a launch of run a wrote."""
        self._status[a, position] = status
        if len(self._status) > _KEPT:
            self._status.popitem(last=False)

    def status(self, a: int, position: int) -> Status:
        """The state of an argument that a launch of run a wrote."""
        return self._status.get((a, position), "equal")
