"""The passes of a run that did not end, with what the compiler reports of each."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from rich.text import Text

from tracing.analyze.passes import pass_table as analysis
from tracing.analyze.passes.compilations import compilations, label, unassembled, unfinished_passes
from tracing.environment import installed
from tracing.model import PassRecord
from tracing.report.passes.passes import no_binary_text
from tracing.store import Run


def unfinished(run: Run) -> list[tuple[PassRecord, str]]:
    """The passes of a run that did not end, each with the compiler's message.

    Cost: some seconds for each such pass.
    """
    recorded, here = run.info.environment.triton, installed("triton")
    other = "" if recorded == here else f"by Triton {here}, where {recorded} recorded it: "
    return [(one, other + diagnosed(run, one)) for one in unfinished_passes(run)]


def unassembled_text(run: Run) -> Iterator[Text]:
    """The kernels without a binary whose passes of MLIR ended, each with the command that finds the cause."""
    known = compilations(run)
    for one, binary in unassembled(run):
        kernel = label(known, one)
        yield no_binary_text(kernel, binary)
        yield Text(f"    next      tracing bisect {quote(str(run.path))} --kernel {quote(kernel)} --crash")


def diagnosed(run: Run, record: PassRecord) -> str:
    """How a pass ends when it is executed on its recorded input."""
    from tracing.compiler.failed_pass import reported

    failure, reasons = reported(record, analysis.passes_of(run, record.compilation), run.text)
    if not failure:
        return (
            "repeated by itself, the pass ends: it lacked memory or time, was interrupted, or the compiler "
            "has changed since"
        )
    died = "ended by" in failure  # a signal ended the pass: only stderr has the reason
    return "\n".join([*([failure] if died or not reasons else []), *reasons])
