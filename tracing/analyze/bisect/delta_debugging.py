"""Find a minimal subset that still passes a test, by delta debugging.

Source: A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on
Software Engineering 28(2), 2002: the algorithm ddmin.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)
Items: TypeAlias = list[T]


def choices(items: Sequence[T]) -> Generator[Items[T], bool, Items[T]]:
    """Search for a subset of the items, in order, that passes, and fails without any single one of its items.

    items -- all of them pass and the empty subset fails; neither is tested

    Yields each subset to test, and receives by send() whether it passes; may yield a subset more than once.
    Returns the smallest subset found. Smaller ones may exist: only single items were tried to be left out
    of it. Cost: `most` choices, often some 3·k·log2(n) if k of n items are needed.
    """
    chosen, parts = list(items), 2
    while len(chosen) > 1:
        pieces = _split(chosen, parts)
        smaller = [*pieces, *(_without(chosen, piece) for piece in pieces)]
        passing = None
        for number, choice in enumerate(smaller):
            if (yield choice):
                passing = number
                break
        if passing is not None:
            chosen, parts = smaller[passing], 2 if passing < len(pieces) else max(parts - 1, 2)
        elif parts < len(chosen):
            parts = min(2 * parts, len(chosen))
        else:
            break
    return chosen


def minimal(items: Sequence[T], passes: Callable[[Items[T]], bool]) -> Items[T]:
    """The choice that `choices` returns if `passes` answers; it is called with a choice more than once."""
    search = choices(items)
    try:
        choice = next(search)
        while True:
            choice = search.send(passes(choice))
    except StopIteration as end:
        smallest: Items[T] = end.value
        return smallest


def most(count: int) -> int:
    """The maximum number of choices that `choices` yields for this number of items."""
    return count * count + 3 * count


def _split(items: Items[T], parts: int) -> list[Items[T]]:
    ends = [len(items) * part // parts for part in range(parts + 1)]
    return [items[start:end] for start, end in pairwise(ends)]


def _without(items: Items[T], piece: Items[T]) -> Items[T]:
    left_out = set(piece)
    return [item for item in items if item not in left_out]
