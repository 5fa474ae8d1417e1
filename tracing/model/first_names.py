"""Names in a sentence: the first of them, and how many more there are."""

from __future__ import annotations

from collections.abc import Sequence


def first_names(names: Sequence[str], most: int = 8) -> str:
    """`a, b and 3 more`."""
    further = len(names) - most
    return ", ".join(names[:most]) + (f" and {further} more" if further > 0 else "")
