"""Apply as many of the given edits to IR as a predicate allows.

Edits are of two kinds: items that are independent of each other, of which as few as possible are kept, and
edits that are tried one after the other.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from tracing.analyze.bisect.delta_debugging import minimal
from tracing.mlir.generic import Module, parsed, printed
from tracing.mlir.names import make_unique

T = TypeVar("T", bound=Hashable)
Holds: TypeAlias = Callable[[str], bool]
Edit: TypeAlias = Callable[[Module], bool]  # False: nothing could be changed


def fewest(
    text: str,
    holds: Holds,
    items: Callable[[Module], Sequence[T]],
    take: Callable[[Module, Collection[T]], None],
) -> str:
    """The text without the items that delta debugging can remove.

    items -- the removable items of a module
    take  -- removes some of them
    """
    module = _Copies(text)
    everything = items(module.copy())

    def without(kept: Collection[T]) -> str:
        rest = module.copy()
        take(rest, set(everything) - set(kept))
        return printed(rest)

    if not everything or holds(without([])):
        return without([])
    return without(minimal(everything, lambda kept: holds(without(kept))))


def tried(text: str, holds: Holds, attempts: Iterator[Edit]) -> str:
    """The text after all edits, applied one after the other, that keep the predicate true."""
    module = _Copies(text)
    for edit in attempts:
        rest = module.copy()
        if edit(rest) and holds(smaller := printed(rest)):
            text, module = smaller, _Copies(smaller)
    return text


class _Copies:
    # parsed modules: parsing the text each time would take long

    def __init__(self, text: str) -> None:
        self._module = parsed(text)
        make_unique(self._module)

    def copy(self) -> Module:
        return copy.deepcopy(self._module)
