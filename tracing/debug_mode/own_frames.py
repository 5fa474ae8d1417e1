"""Remove the frames of this project from the stacks that torch's DebugMode notes.

The virtual GPU and the recorder call torch's functions for a program. Torch shows the innermost frame that is
not its own, which would be theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_PACKAGE = re.escape(str(Path(__file__).parents[1]))
_OWN = re.compile(rf'^  File "{_PACKAGE}/[^"]*", line .*\n(?:    .*\n)*', re.MULTILINE)
_STACKS = ("stack_trace", "fwd_stack_trace")  # of a call, and of the forward call of a backward one


def remove_own_frames(calls: Iterable[Any]) -> None:
    """Remove them from each call in which torch noted a stack."""
    for call in calls:
        for name in _STACKS:
            if stack := getattr(call, name, None):
                setattr(call, name, _OWN.sub("", stack))
