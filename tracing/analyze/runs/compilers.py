"""Decide whether comparing the results of two runs says anything about their compilers."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

from tracing.analyze.runs.recording_commands import is_virtual
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class CompilersNotCompared:
    """The reason why a comparison says nothing about compilers, and the command that does."""

    sentence: str
    command: str


def says_nothing_of_compilers(a: Run, b: Run) -> CompilersNotCompared | None:
    """None if comparing the runs' values says something about their compilers; else the reason.

    On a virtual GPU it never can: Triton's interpreter executes the kernels' Python source, and nothing of
    what was compiled.
    """
    if not (is_virtual(a.info.environment) and is_virtual(b.info.environment)):
        return None
    return CompilersNotCompared(
        "both runs were made on a virtual GPU, where Triton's interpreter executes the kernels' source: "
        "equal or not, their values say nothing about the compilers",
        f"tracing passes {quote(str(a.path))} {quote(str(b.path))}",
    )
