"""The compilation that a user names; a note says which one a name of several means."""

from __future__ import annotations

from rich.text import Text

from tracing import store
from tracing.analyze.passes.pass_table import DIGITS, compilation, compilations, label, unlaunched_namesakes
from tracing.cli.app import err
from tracing.model import Compilation
from tracing.report.text import plural


def chosen_kernel(run: store.Run, kernel: str | None) -> Compilation:
    """The compilation that a user names; raises Problem as `compilation` does."""
    chosen = compilation(run, kernel)
    others = unlaunched_namesakes(run, kernel, chosen)
    if others:
        named = f"{label(compilations(run), chosen)}  {chosen.hash[:DIGITS]}"
        rest = plural(len(others), "other compilation")
        err.print(Text(f"chosen: {named}, which was launched; not launched: {rest} of {run.path}", "dim"))
    return chosen
