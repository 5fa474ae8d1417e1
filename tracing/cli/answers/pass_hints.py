"""The next commands to type for the passes of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from shlex import quote

from tracing import store
from tracing.analyze.passes.operations import without_locations
from tracing.analyze.passes.pass_table import telling_pass
from tracing.analyze.passes.renaming import renamed
from tracing.errors import Problem
from tracing.model import PassRecord


def of_passes(run: store.Run, kernel: str, passes: Sequence[PassRecord]) -> list[str]:
    """The commands for one pass of a kernel, the last of Triton's own that changed the TTGIR.

    kernel -- a name that identifies one compilation of the run
    passes -- those of that compilation
    """
    named = telling_pass(passes, partial(_shows, run))
    if named is None:
        return []
    of_pass = f"{quote(str(run.path))} --kernel {quote(kernel)} --pass {quote(named)}"
    return [f"tracing lit {of_pass}", f"tracing debug {of_pass}"]


def _shows(run: store.Run, one: PassRecord) -> bool:
    # whether a test could check what a pass changed: more than locations and names of values
    if not one.before or not one.after:  # it could not be derived, or the pass did not end
        return False
    try:
        before, after = (without_locations(run.text(blob)) for blob in (one.before, one.after))
    except Problem:  # the IR is lost
        return False
    return before != renamed(before, after)
