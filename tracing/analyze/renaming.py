"""The names of values before and after a pass, made comparable.

A pass that removes one operation renumbers every value behind it, and a diff of the texts shows all of them.
Here a value that both texts define on lines of the same form, or that begin alike, gets the name that it had
before; any other gets a mark, `%12'`, where its name was taken. No name is given twice and every use follows
its definition, so operands that were swapped or replaced stay visible.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher

_STRING = r'"(?:[^"\\]|\\.)*"'
_VALUE = re.compile(rf"{_STRING}|(?P<value>%[\w$.-]*[\w$])")
_DEFINED = re.compile(rf"{_STRING}|(?P<value>%[\w$.-]*[\w$])(?= = |: )")  # `iter_args(%a = …`, `^bb0(%a: …`


def renamed(before: str, after: str) -> str:
    """The module `after`, its values named as in `before` where both define them.

    Costs one alignment of the lines, some tenths of a second for ten thousand.
    """
    old, new = before.splitlines(), after.splitlines()
    partners = _aligned(old, new)
    taken = {name for line in old for name in _values(_VALUE, line)}
    names: dict[str, str] = {}  # of the values in sight: MLIR uses a name again only where it is out of sight
    lines = []
    for index, line in enumerate(new):
        partner = old[partners[index]] if index in partners else None
        names |= dict(_definitions(line, partner, taken))
        lines.append(_replaced(line, names))
    return "".join(f"{line}\n" for line in lines)


def _aligned(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    # lines of `new` -> lines of `old`: those of one form in the same order, then those that moved, then those
    # that begin alike, as where a pass changes every type: first with the names of their results
    forms = [[_VALUE.sub(_form, line).strip() for line in lines] for lines in (old, new)]
    named = [["".join(line.split()[:3]) for line in lines] for lines in (old, new)]
    unnamed = [["".join(form.split()[:3]) for form in lines] for lines in forms]
    blocks = SequenceMatcher(None, forms[0], forms[1]).get_matching_blocks()
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


def _form(match: re.Match[str]) -> str:
    return "%" if match["value"] else match[0]


def _definitions(line: str, partner: str | None, taken: set[str]) -> Iterator[tuple[str, str]]:
    mine, old = list(_defined(line)), list(_defined(partner or ""))
    if len(mine) != len(old):
        old = [f"{name}'" if name in taken else name for name in mine]
    yield from zip(mine, old, strict=True)


def _defined(line: str) -> Iterator[str]:
    results, _, rest = line.partition(" = ") if line.lstrip().startswith("%") else ("", "", line)
    yield from _values(_VALUE, results)
    yield from _values(_DEFINED, rest)


def _values(pattern: re.Pattern[str], line: str) -> Iterator[str]:
    return (match["value"] for match in pattern.finditer(line) if match["value"])


def _replaced(line: str, names: Mapping[str, str]) -> str:
    return _VALUE.sub(lambda match: names.get(match["value"] or "", match[0]), line)
