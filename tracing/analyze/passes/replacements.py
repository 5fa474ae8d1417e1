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

    Gives, by the pass's index and the name of the operation, how many more operations of which names stand
    after the pass where the removed ones were. Reads the IR around each such pass.
    """
    by_origin: dict[tuple[int, str], Mapping[str, int]] = {}
    for step in history(steps, wanted):
        record = step.record
        removed = [name for name in step.before if step.after.get(name, 0) < step.before[name]]
        if record.after is None or not removed:
            continue
        before, after = _by_place(run.text(record.before)), _by_place(run.text(record.after))
        for name in removed:
            by_origin[record.index, name] = _became(name, before, after)
    return by_origin


_Places = Mapping[tuple[Stack, ...], Counter[str]]


def _by_place(text: str) -> _Places:
    # how often each operation names a location as its origin
    places: dict[tuple[Stack, ...], Counter[str]] = {}
    names = {one.line: one.name for one in operations(text)}
    one: Located
    for one in located("ttgir", text):
        if one.stacks:
            places.setdefault(one.stacks, Counter())[names[one.line]] += 1
    return places


def _became(name: str, before: _Places, after: _Places) -> Counter[str]:
    became: Counter[str] = Counter()
    for place, there in before.items():
        now = after.get(place, Counter())
        if now[name] < there[name]:
            became += now - there  # those that there are more of
    return became
