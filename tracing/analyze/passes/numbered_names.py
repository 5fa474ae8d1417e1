"""Names that a user gives: `NAME#2` for the second of a name, and the nearest known ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TypeVar

from tracing.model.first_names import first_names

T = TypeVar("T")


def nth_named(items: Sequence[T], which: str, name: Callable[[T], str]) -> list[T]:
    """The n-th item that has a name, as `NAME#n` asks, from 1; empty: none, or another form."""
    wanted, _, number = which.rpartition("#")
    same = [item for item in items if name(item) == wanted]
    return same[int(number) - 1 : int(number)] if number.isdecimal() and int(number) else []


def nearest(name: str, known: Sequence[str]) -> str:
    """The known names that are most like a name; if none is, the first of all."""
    near = get_close_matches(name, sorted(set(known)), n=3, cutoff=0.5)
    return f"nearest: {', '.join(near)}" if near else f"there are {first_names(known)}"
