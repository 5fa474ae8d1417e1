"""Pair the compilations of one kernel in two runs such that as many properties as possible agree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracing.model import Compilation

_FOLDERS = re.compile(r"/(?:[^'\"/]+/)+")
_CONSTANTS = 1000  # a difference among these weighs more than all of the options


@dataclass(frozen=True, slots=True)
class CompilationPairs:
    """The compilations of two runs."""

    pairs: Sequence[tuple[Compilation, Compilation]]
    only_a: Sequence[Compilation]
    only_b: Sequence[Compilation]


def paired(a: Sequence[Compilation], b: Sequence[Compilation]) -> CompilationPairs:
    """Pair compilations by kernel name; of several those that differ in the fewest constants and options.

    If each run has only one compilation, these two are paired, whatever their names are.
    """
    if len(a) == len(b) == 1:
        return CompilationPairs([(a[0], b[0])], (), ())
    namesakes = [(m, n) for m, one in enumerate(a) for n, other in enumerate(b) if _same_name(one, other)]
    partners: dict[int, int] = {}
    taken: set[int] = set()
    for m, n in sorted(namesakes, key=lambda pair: _distance(a[pair[0]], b[pair[1]])):
        if m not in partners and n not in taken:
            partners[m] = n
            taken.add(n)
    return CompilationPairs(
        [(a[m], b[partners[m]]) for m in sorted(partners)],
        [one for m, one in enumerate(a) if m not in partners],
        [other for n, other in enumerate(b) if n not in taken],
    )


def _same_name(a: Compilation, b: Compilation) -> bool:
    return a.kernel_name == b.kernel_name


def partner_of(one: Compilation, among: Sequence[Compilation]) -> Compilation | None:
    """The compilation of the same kernel that differs least; None: there is none of its name."""
    same = [other for other in among if _same_name(one, other)]
    return min(same, key=lambda other: _distance(one, other), default=None)


def _distance(a: Compilation, b: Compilation) -> tuple[bool, int]:
    constants, options = differing(a.constants, b.constants), differing(a.options, b.options)
    return a.target != b.target, _CONSTANTS * len(constants) + len(options)


def differing(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """Values that differ, by name; None for a missing value. Paths of files are ignored."""
    values = {name: (a.get(name), b.get(name)) for name in dict.fromkeys((*a, *b))}
    return {
        name: pair for name, pair in values.items() if _without_folders(pair[0]) != _without_folders(pair[1])
    }


def _without_folders(value: str | None) -> str | None:
    return _FOLDERS.sub("", value) if value is not None else None
