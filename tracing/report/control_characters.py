"""Escape characters that act instead of being shown: they move a cursor, set a title, or reorder text."""

from __future__ import annotations

import re

# C0 except tab and line feed, DEL and C1, direction marks, lone surrogates
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Text with each control character, except for tab and line feed, written as \\uXXXX."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
