"""Find the operations that replaced an operation which a pass removed.

An operation keeps its location when a pass rewrites it, so the replacements are the new operations with the
same location. Python lines would be too coarse for that: an operation that the pass did not change is no
replacement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from tracing.analyze.passes.locations import Located, Stack, located
from tracing.analyze.passes.operations import operations
from tracing.analyze.passes.pass_table import PassStep, history
from tracing.model import PassRecord
from tracing.store import Run


def replacements(
    run: Run, steps: Sequence[PassStep[PassRecord]], wanted: Collection[str]
) -> dict[tuple[int, str], Mapping[str, int]]:
    """The operations that replaced those that passes removed.

    steps  -- the passes of one compilation
    wanted -- names of operations

    Returns, by the pass's index and the removed operation's name, the names and counts of the operations that
    replaced it. Reads the IR around each such pass.
    """
    by_origin: dict[tuple[int, str], Mapping[str, int]] = {}
    for step in history(steps, wanted):
        record = step.record
        removed = [name for name in step.before if step.after.get(name, 0) < step.before[name]]
        if record.after is None or not removed:
            continue
        before, after = _by_stacks(run.text(record.before)), _by_stacks(run.text(record.after))
        for name in removed:
            by_origin[record.index, name] = _became(name, before, after)
    return by_origin


_NamesByStacks = Mapping[tuple[Stack, ...], Counter[str]]


def _by_stacks(text: str) -> _NamesByStacks:
    # how often each operation names a location as its origin
    names_by_stacks: dict[tuple[Stack, ...], Counter[str]] = {}
    names = {one.line: one.name for one in operations(text)}
    one: Located
    for one in located("ttgir", text):
        if one.stacks:
            names_by_stacks.setdefault(one.stacks, Counter())[names[one.line]] += 1
    return names_by_stacks


def _became(name: str, before: _NamesByStacks, after: _NamesByStacks) -> Counter[str]:
    became: Counter[str] = Counter()
    for stacks, there in before.items():
        now = after.get(stacks, Counter())
        if now[name] < there[name]:
            became += now - there  # operations whose number grew
    return became
