"""The compiler passes of a kernel for a report: what each changed, in operations and as a diff."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from tracing.analyze.line_matching import unified_diff
from tracing.analyze.passes.operations import counts, without_locations
from tracing.analyze.passes.renaming import renamed
from tracing.model import Blob, PassRecord

LINES = 20_000  # of a diff that a report holds; `tracing passes` shows the rest


def pass_data(passes: Sequence[PassRecord], text: Callable[[Blob], str]) -> list[dict[str, Any]]:
    """The passes of one compilation.

    text -- the IR in a blob

    Cost: some 10 ms for a pass that changed the IR, up to a second for one that rewrote it all.
    """
    plain = cache(lambda blob: without_locations(text(blob)))
    counted: Callable[[Blob], Mapping[str, int]] = cache(lambda blob: counts(text(blob)))
    return [_pass(one, plain, counted) for one in passes]


def _pass(
    one: PassRecord, plain: Callable[[Blob], str], counted: Callable[[Blob], Mapping[str, int]]
) -> dict[str, Any]:
    known = bool(one.before and one.after)
    before = counted(one.before) if one.before else {}
    after = counted(one.after) if known and one.after else {}
    return {
        "index": one.index,
        "stage": one.stage,
        "name": one.name,
        "adder": one.adder,
        "arguments": list(one.arguments),
        "changed": one.changed and one.after is not None,
        "ended": one.after is not None,
        "wall_ms": one.wall_ms,
        "operations": [sum(before.values()), sum(after.values()) if known else None],
        "changes": _changes(before, after) if known else [],
        "diff": _diff(plain(one.before), plain(one.after)) if known and one.changed and one.after else "",
    }


def _changes(before: Mapping[str, int], after: Mapping[str, int]) -> list[tuple[str, int, int]]:
    names = sorted({*before, *after})
    pairs = ((name, before.get(name, 0), after.get(name, 0)) for name in names)
    return [(name, a, b) for name, a, b in pairs if a != b]


def _diff(before: str, after: str) -> str:
    return text_diff(before, renamed(before, after), ("before", "after")) if before != after else ""


def text_diff(a: str, b: str, titles: tuple[str, str]) -> str:
    """The hunks of a unified diff of two texts; "" if they are equal."""
    lines = list(unified_diff(a.splitlines(), b.splitlines(), titles))
    more = [f"@@ {len(lines) - LINES} more lines: `tracing passes` shows them @@"] if lines[LINES:] else []
    return "\n".join([*lines[:LINES], *more])
