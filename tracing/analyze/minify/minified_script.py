"""The script of the smallest graph, and whether it reproduces the failure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MinifiedScript:
    """A script, as it ended in a fresh process."""

    path: str
    fails: bool  # the script fails as the graph does
    output: str  # the last lines of its output
    missing: tuple[str, ...] = ()  # objects that the graph uses, which have no source
    loads_case: bool = False  # the script loads the case first, which changes the compiler
