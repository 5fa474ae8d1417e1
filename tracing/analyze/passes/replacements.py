"""Find the operations that replaced an operation which a pass removed.

An operation keeps its location when a pass rewrites it, so the replacements are the new operations with the
same location, line and column. An operation that the pass did not change is no replacement. The operations of
one expression have one location: which of them a new operation replaces is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tracing.analyze.passes.locations import Stack, located_by_column
from tracing.analyze.passes.operations import operations
from tracing.analyze.passes.pass_table import PassStep, history
from tracing.model import PassRecord
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class ReplacedOperation:
    """The operations that replaced all operations of one name which a pass removed."""

    operations: Mapping[str, int]  # how often each
    others: tuple[str, ...]  # operations that were removed at the same locations: they are replaced as well


def replacements(
    run: Run, steps: Sequence[PassStep[PassRecord]], wanted: Collection[str]
) -> dict[tuple[int, str], ReplacedOperation]:
    """The operations that replaced those that passes removed.

    steps  -- the passes of one compilation
    wanted -- names of operations

    Returns them by the pass's index and the removed operation's name. Reads the IR around each such pass.
    """
    by_origin: dict[tuple[int, str], ReplacedOperation] = {}
    for step in history(steps, wanted):
        record = step.record
        removed = [name for name in step.before if step.after.get(name, 0) < step.before[name]]
        if record.after is None or not removed:
            continue
        before, after = _by_stacks(run.text(record.before)), _by_stacks(run.text(record.after))
        for name in removed:
            by_origin[record.index, name] = _replaced(name, before, after)
    return by_origin


_NamesByStacks = Mapping[tuple[Stack, ...], Counter[str]]


def _by_stacks(text: str) -> _NamesByStacks:
    # how often each operation names a location as its origin
    names_by_stacks: dict[tuple[Stack, ...], Counter[str]] = {}
    names = {one.line: one.name for one in operations(text)}
    for one in located_by_column(text):
        if one.stacks:
            names_by_stacks.setdefault(one.stacks, Counter())[names[one.line]] += 1
    return names_by_stacks


def _replaced(name: str, before: _NamesByStacks, after: _NamesByStacks) -> ReplacedOperation:
    became: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for stacks, there in before.items():
        now = after.get(stacks, Counter())
        if now[name] < there[name] and (new := now - there):  # operations whose number grew
            became += new
            others += there - now
    return ReplacedOperation(became, tuple(sorted(set(others) - {name})))
