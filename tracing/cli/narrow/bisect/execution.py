"""Execute the IR after each pass of a compilation, parsed by Triton's own parser."""

from __future__ import annotations

from collections.abc import Sequence

from tracing.analyze.bisect.execution import Meaning, argument_names, first_change
from tracing.analyze.bisect.snapshots import Snapshot
from tracing.compiler.generic_text import generic_texts
from tracing.errors import Problem
from tracing.mlir.types import Unknown


def meaning_of(snapshots: Sequence[Snapshot], seconds: float) -> Meaning:
    """Execute the IR after each pass, as far as that is needed.

    snapshots -- of MLIR, in order; the first enters the compilation

    Cost: two executions where nothing changes, some ten otherwise; 0.1 to 5 s.
    """
    row = [one for at, one in enumerate(snapshots) if at == 0 or one.text != snapshots[at - 1].text]
    try:
        texts = generic_texts([one.text for one in row], seconds=seconds)
        change = first_change(len(row), texts.__getitem__, argument_names(row[0].text))
    except (Problem, Unknown):
        return Meaning()
    if isinstance(change, int):
        return Meaning(last=row[change].step)
    return Meaning(tuple(one.step for one in row[change.before + 1 : change.after + 1]), change.what)
