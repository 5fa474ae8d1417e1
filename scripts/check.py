"""The result of one check of the machine: what was found, what is needed, and the remedy."""

from __future__ import annotations

from dataclasses import dataclass

LEVELS = ("ok", "warning", "blocker")  # the index is the exit status


# No slots, here and in pins.py: on a Python too old for them, the message about that must still appear.
@dataclass(frozen=True)
class Check:
    name: str
    found: str
    needed: str
    level: str = "ok"  # one of LEVELS
    remedy: str = ""  # a command, if one helps
    cost: str = ""  # features that need it
