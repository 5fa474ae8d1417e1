"""The passes of a run that did not end, with what the compiler reports of each."""

from __future__ import annotations

from tracing.analyze.passes import pass_table as analysis
from tracing.environment import installed
from tracing.model import PassRecord
from tracing.store import Run


def unfinished(run: Run) -> list[tuple[PassRecord, str]]:
    """The passes of a run that did not end, each with the compiler's message.

    Cost: some seconds for each such pass.
    """
    recorded, here = run.info.environment.triton, installed("triton")
    other = "" if recorded == here else f"by Triton {here}, where {recorded} recorded it: "
    return [(one, other + diagnosed(run, one)) for one in analysis.unfinished(run)]


def diagnosed(run: Run, record: PassRecord) -> str:
    """How a pass ends when it is rerun on its recorded input."""
    from tracing.compiler.failed_pass import reported

    failure, reasons = reported(record, analysis.passes_of(run, record.compilation), run.text)
    if not failure:
        return (
            "run once more, by itself, it ends: it lacked memory or time, was interrupted, or the compiler "
            "has changed since"
        )
    died = "ended by" in failure  # by a signal: the reason is only on stderr
    return "\n".join([*([failure] if died or not reasons else []), *reasons])
