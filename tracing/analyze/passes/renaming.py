"""Align the names of values and aliases before and after a pass, so that a diff ignores renumbering.

A pass that removes one operation renumbers every later value, and a diff of the texts shows all of them.
Here a value that both texts define on lines of the same form, or with the same beginning, keeps its name from
before the pass; any other value gets a suffix, `%12'`, if its name is taken. Names are unique and every use
follows its definition, so swapped or replaced operands stay visible.

Aliases of attributes and types, `#blocked1`, are treated in the same manner: a layout that both texts have
keeps its alias, and a new one gets a suffix if its alias meant another layout before.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from tracing.analyze.line_matching import LineMatcher
from tracing.analyze.passes.operations import STRING

_VALUE = re.compile(rf"{STRING}|(?P<name>%[\w$.-]*[\w$])")
_DEFINED = re.compile(rf"{STRING}|(?P<name>%[\w$.-]*[\w$])(?= = |: )")  # `iter_args(%a = …`, `^bb0(%a: …`
_ALIAS = re.compile(rf"{STRING}|(?P<name>[#!][A-Za-z_][\w$]*)(?![\w$.<])")  # but not `#ttg.blocked<…>`
_ALIASED = re.compile(r"(?P<name>[#!][A-Za-z_][\w$]*) = (?P<meaning>.*)")
_LINES = 1 << 15  # whose names are remembered: most passes leave most lines as they are


def renamed(before: str, after: str) -> str:
    """The module `after`, its values and aliases named as in `before` where both define them.

    Costs one alignment of the lines, some tenths of a second for ten thousand.
    """
    old = before.splitlines()
    new = list(_with_aliases_of(old, after.splitlines()))
    partners = _aligned(old, new)
    taken = {name for line in old for name in _values_in(line)}
    names: dict[str, str] = {}  # other names of values in scope: MLIR reuses a name only outside of its scope
    lines = []
    for index, line in enumerate(new):
        partner = old[partners[index]] if index in partners else None
        for mine, name in _definitions(line, partner, taken):
            names[mine] = name
        lines.append(replaced_values(line, names))
    return "".join(f"{line}\n" for line in lines)


def _with_aliases_of(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    # the lines of `new`; an alias is defined after those that its meaning refers to
    known = {match["meaning"]: match["name"] for match in map(_ALIASED.fullmatch, old) if match}
    taken = set(known.values())
    names: dict[str, str] = {}
    for line in new:
        if match := _ALIASED.fullmatch(line):
            name, meaning = match["name"], _replaced(_ALIAS, match["meaning"], names)
            names[name] = known.get(meaning) or (f"{name}'" if name in taken else name)
        yield _replaced(_ALIAS, line, names)


def _aligned(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    # lines of `new` -> lines of `old`: lines of one form in the same order, then moved lines, then lines with
    # the same beginning, because a pass may change every type; those whose results have one name come first
    forms = [list(map(_form, lines)) for lines in (old, new)]
    named = [["".join(line.split()[:3]) for line in lines] for lines in (old, new)]
    unnamed = [["".join(form.split()[:3]) for form in lines] for lines in forms]
    blocks = LineMatcher(forms[0], forms[1]).get_matching_blocks()
    partners = {block.b + i: block.a + i for block in blocks for i in range(block.size)}
    for keys in (forms, named, unnamed):
        _pair(partners, keys[0], keys[1])
    return partners


def _pair(partners: dict[int, int], old: Sequence[str], new: Sequence[str]) -> None:
    # lines without a partner whose keys are equal, first with first
    left: dict[str, deque[int]] = {}
    for index in sorted(set(range(len(old))) - set(partners.values())):
        left.setdefault(old[index], deque()).append(index)
    for index, key in enumerate(new):
        if index not in partners and left.get(key):
            partners[index] = left[key].popleft()


@lru_cache(_LINES)
def _form(line: str) -> str:
    return _VALUE.sub(lambda match: "%" if match["name"] else match[0], line).strip()


@lru_cache(_LINES)
def definitions_in(line: str) -> tuple[str, ...]:
    """The names of the values that a line of a module defines, in order."""
    results, _, rest = line.partition(" = ") if line.lstrip().startswith("%") else ("", "", line)
    return (*_values(_VALUE, results), *_values(_DEFINED, rest))


@lru_cache(_LINES)
def _values_in(line: str) -> tuple[str, ...]:
    return tuple(_values(_VALUE, line))


def replaced_values(line: str, names: Mapping[str, str]) -> str:
    """A line of a module with other names for its values."""
    return _replaced(_VALUE, line, names)


def _definitions(line: str, partner: str | None, taken: set[str]) -> Iterator[tuple[str, str]]:
    mine, old = definitions_in(line), definitions_in(partner or "")
    if len(mine) != len(old):
        old = tuple(f"{name}'" if name in taken else name for name in mine)
    yield from zip(mine, old, strict=True)


def _values(pattern: re.Pattern[str], line: str) -> Iterator[str]:
    return (match["name"] for match in pattern.finditer(line) if match["name"])


def _replaced(pattern: re.Pattern[str], line: str, names: Mapping[str, str]) -> str:
    return pattern.sub(lambda match: names.get(match["name"] or "", match[0]), line)
