"""The compilation that a user names; a note says which one a name of several means."""

from __future__ import annotations

from rich.text import Text

from tracing import store
from tracing.analyze.passes.compilations import (
    DIGITS,
    compilation,
    compilations,
    label,
    other_namesakes,
    unended,
)
from tracing.cli.app import err
from tracing.model import Compilation
from tracing.report.text import plural


def chosen_kernel(run: store.Run, kernel: str | None, *, crashed: bool = False) -> Compilation:
    """The compilation that a user names; raises Problem as `compilation` does.

    crashed -- of several the one that did not end is meant
    """
    chosen = compilation(run, kernel, crashed=crashed)
    others = other_namesakes(run, kernel, chosen)
    if others:
        named = f"{label(compilations(run), chosen)}  {chosen.hash[:DIGITS]}"
        rest = plural(len(others), "other compilation")
        why = f"which was launched; not launched: {rest}"
        if crashed and chosen.hash in unended(run):
            why = f"whose compile did not end; not chosen: {rest}"
        err.print(Text(f"chosen: {named}, {why} of {run.path}", "dim"))
    return chosen
