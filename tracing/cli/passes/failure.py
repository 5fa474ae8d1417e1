"""What the compiler reports when a recorded pass fails: a child process reruns only that pass."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tracing.analyze.passes import pass_table as analysis
from tracing.environment import installed
from tracing.model import PassRecord
from tracing.store import Run

SECONDS = 60.0  # that the pass may take
LINES = 4  # of what it says
_NOISE = re.compile(  # MLIR adds these to what a pass says
    r"A signal was caught|Failures have been detected|Pipeline failed while executing|^pass \d+, .*, failed: "
)
_WORDS = ("Assertion", "LLVM ERROR", "error:")  # of lines that say why, when a process dies


def unfinished(run: Run) -> list[tuple[PassRecord, str]]:
    """The passes of a run that did not end, each with what the compiler says of it.

    Cost: some seconds where there is one, none where there is none.
    """
    recorded, here = run.info.environment.triton, installed("triton")
    other = "" if recorded == here else f"by Triton {here}, where {recorded} recorded it: "
    return [(one, other + diagnosed(run, one)) for one in analysis.unfinished(run)]


def diagnosed(run: Run, record: PassRecord) -> str:
    """How a pass ends when it is rerun on the IR that it was given."""
    from tracing.compiler.child import in_child
    from tracing.compiler.resume import place_before, resume

    passes: Sequence[PassRecord] = analysis.passes_of(run, record.compilation)
    place = place_before(record, passes, run.text)
    ended = in_child(lambda: bool(resume(record.compilation, place, last=record.stage)), SECONDS)
    if not ended.failure:
        return "run once more, by itself, it ends: it failed for want of memory or time, or was interrupted"
    lines = dict.fromkeys(line.strip() for line in [*ended.stderr.splitlines(), *ended.failure.splitlines()])
    said = [line for line in lines if any(word in line for word in _WORDS) and not _NOISE.search(line)]
    died = "ended by" in ended.failure  # by a signal: why is only on stderr
    return "\n".join([*([ended.failure] if died or not said else []), *said[:LINES]])
