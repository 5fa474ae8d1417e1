"""Compare the errors of two failed runs, ignoring texts that vary from process to process."""

from __future__ import annotations

import re
from itertools import zip_longest

from tracing.model import Outcome

# patterns that vary between equal errors, and their replacements
_ACCIDENTAL = (
    (re.compile(r"\b0x[0-9a-fA-F]+"), "0x…"),  # addresses
    (re.compile(r"(?:/tmp|/var/tmp|/var/folders|/dev/shm)/[^\s'\":,)]*"), "/tmp/…"),
    (re.compile(r"\b(pid|process|thread|tid)([ =:#]*)\d+", re.IGNORECASE), r"\1\2…"),
    (re.compile(r"\b\d+(\.\d+)? ([KMGT]i?B)\b"), r"… \2"),  # how much memory was free
    (re.compile(r"\b\d{9,}\b"), "…"),  # an id() or an address, in decimal
)


def plain(text: str) -> str:
    """A message without addresses, numbers of processes, temporary paths and amounts of memory."""
    for pattern, instead in _ACCIDENTAL:
        text = pattern.sub(instead, text)
    return text


def alike(a: Outcome, b: Outcome) -> bool:
    """True if two errors have the same type, message and line of the case."""
    return plain(a.detail) == plain(b.detail) and plain(a.message) == plain(b.message)


def error_text(outcome: Outcome, other: Outcome) -> str:
    """The error of a run as text, without what differs from process to process."""
    if outcome.status != "failed":
        return outcome.status
    sentence = f"failed: {outcome.detail}"
    if plain(outcome.detail) == plain(other.detail):  # the difference is further below
        lines = zip_longest(outcome.message.splitlines(), other.message.splitlines(), fillvalue="")
        sentence += next((f" … {one.strip()}" for one, two in lines if plain(one) != plain(two)), "")
    return sentence
