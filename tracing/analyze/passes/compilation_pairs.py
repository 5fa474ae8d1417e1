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
    left = list(b)
    pairs = []
    for one in a:
        if (partner := partner_of(one, left)) is not None:
            left.remove(partner)
            pairs.append((one, partner))
    matched = {id(one) for one, _ in pairs}
    return CompilationPairs(pairs, [one for one in a if id(one) not in matched], left)


def partner_of(one: Compilation, among: Sequence[Compilation]) -> Compilation | None:
    """The compilation of the same kernel that differs least; None: there is none of its name."""
    same = [other for other in among if other.kernel_name == one.kernel_name]
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
