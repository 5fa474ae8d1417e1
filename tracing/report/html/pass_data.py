"""The compiler passes of a kernel for a report: what each changed, in operations and as a diff."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from tracing.analyze.line_matching import unified_diff
from tracing.analyze.passes.operations import counts, without_locations
from tracing.analyze.passes.renaming import renamed
from tracing.model import Blob, PassRecord

LINES = 20_000  # of a diff that a report holds; `tracing passes` shows the rest
KEPT = 128  # texts and diffs that are kept: the configurations of an autotuner share the first passes


class PassReader:
    """Describes the passes of the kernels of one run.

    Cost: 0.1 s for a pointwise kernel, 1 s for attention; most of it for the passes that make LLVM's dialect.
    """

    def __init__(self, text: Callable[[Blob], str]) -> None:
        """text -- the IR in a blob"""
        self._plain = lru_cache(KEPT)(lambda blob: without_locations(text(blob)))
        self._counts = lru_cache(KEPT)(lambda blob: counts(text(blob)))
        self._diff = lru_cache(KEPT)(self._new_diff)

    def passes(self, records: Sequence[PassRecord]) -> list[dict[str, Any]]:
        """The passes of one compilation, in order."""
        return [self._pass(one) for one in records]

    def _pass(self, one: PassRecord) -> dict[str, Any]:
        known = bool(one.before and one.after)
        before: Mapping[str, int] = self._counts(one.before) if one.before else {}
        after: Mapping[str, int] = self._counts(one.after) if known else {}
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
            "diff": self._diff(one.before, one.after) if known and one.changed else "",
        }

    def _new_diff(self, before: Blob, after: Blob) -> str:
        texts = self._plain(before), self._plain(after)
        return text_diff(texts[0], renamed(*texts), ("before", "after")) if texts[0] != texts[1] else ""


def _changes(before: Mapping[str, int], after: Mapping[str, int]) -> list[tuple[str, int, int]]:
    names = sorted({*before, *after})
    pairs = ((name, before.get(name, 0), after.get(name, 0)) for name in names)
    return [(name, a, b) for name, a, b in pairs if a != b]


def text_diff(a: str, b: str, titles: tuple[str, str]) -> str:
    """The hunks of a unified diff of two texts; "" if they are equal."""
    lines = list(unified_diff(a.splitlines(), b.splitlines(), titles))
    more = [f"@@ {len(lines) - LINES} more lines: `tracing passes` shows them @@"] if lines[LINES:] else []
    return "\n".join([*lines[:LINES], *more])
