"""Names of writes, as causes state them."""

from __future__ import annotations

from tracing.analyze.compare.divergence_kinds import OperatorCause, WhichRuns, Writer
from tracing.analyze.compare.timeline.memory import Write


def writer_of(a: Write | None, b: Write | None) -> Writer:
    """The launch of one run or of both."""
    one = a or b
    assert one is not None
    return Writer(a.number if a else None, b.number if b else None, one.name, one.argument)


def write_text(write: Write) -> str:
    """A launch, a call of an operator, or the name of a value that the case began with."""
    if write.kind == "launch":
        return f"launch #{write.number} {write.name}"
    if write.kind == "start":
        return write.name
    arguments = f"({write.argument})" if write.argument else ""
    return f"call {write.call + 1} of {write.name}{arguments}"


def operator_cause(a: Write | None, b: Write | None, runs: WhichRuns) -> OperatorCause:
    """An operator of one run or of both as a proven cause."""
    names = a.name if a else "", b.name if b else ""
    arguments = a.argument if a else "", b.argument if b else ""
    return OperatorCause(names, arguments, runs, proven=True)
