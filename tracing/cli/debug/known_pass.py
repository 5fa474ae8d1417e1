"""Refuses the name of a pass that this Triton does not have, before a process is waited for."""

from __future__ import annotations

import fnmatch
from difflib import get_close_matches

from tracing.errors import Problem


def require_pass(name: str) -> None:
    """Raise Problem with the nearest names if a name or glob is likely to be misspelt.

    A misspelt name would be waited for until the program has ended.
    """
    from tracing.compiler.adders import adders

    known = list(adders())
    near = get_close_matches(name, known, n=3, cutoff=0.7)
    if near and not fnmatch.filter(known, name):
        raise Problem(f"this Triton has no pass {name}", f"nearest: {', '.join(near)}")
