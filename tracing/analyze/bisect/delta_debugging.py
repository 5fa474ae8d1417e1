"""The smallest choice that still passes a test: delta debugging.

Source: A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on
Software Engineering 28(2), 2002: the algorithm ddmin.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)
Items: TypeAlias = list[T]


def minimal(items: Sequence[T], passes: Callable[[Items[T]], bool]) -> Items[T]:
    """Some of the items, in order, that pass and that pass no more without any one of them.

    items  -- they pass together, and none of them do not; neither is asked
    passes -- the same choice is asked more than once: it remembers

    There may be smaller choices: only that no single item can be left out is promised. Cost: `most` choices,
    often some 3·k·log2(n) where k of n items are needed.
    """
    chosen, parts = list(items), 2
    while len(chosen) > 1:
        pieces = _split(chosen, parts)
        smaller = [*pieces, *(_without(chosen, piece) for piece in pieces)]
        found = next((n for n, choice in enumerate(smaller) if passes(choice)), None)
        if found is not None:
            chosen, parts = smaller[found], 2 if found < len(pieces) else max(parts - 1, 2)
        elif parts < len(chosen):
            parts = min(2 * parts, len(chosen))
        else:
            break
    return chosen


def most(count: int) -> int:
    """How many choices of so many items `minimal` asks about at most."""
    return count * count + 3 * count


def _split(items: Items[T], parts: int) -> list[Items[T]]:
    ends = [len(items) * part // parts for part in range(parts + 1)]
    return [items[start:end] for start, end in pairwise(ends)]


def _without(items: Items[T], piece: Items[T]) -> Items[T]:
    left_out = set(piece)
    return [item for item in items if item not in left_out]
