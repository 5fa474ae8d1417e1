"""Names of writes, as causes state them."""

from __future__ import annotations

from tracing.analyze.compare.cause_kinds import OperatorCause, WhichRuns, Writer
from tracing.analyze.compare.causes.memory_read import MemoryRead, ReadPair
from tracing.analyze.compare.timeline.memory import Input, Write


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


def part_texts(a: Write, b: Write, reads: ReadPair) -> tuple[str, str]:
    """`write_text` of the write of each run; if these are equal, also the part of it that was read."""
    texts = write_text(a), write_text(b)
    if texts[0] != texts[1]:
        return texts
    given = [
        input_with(one, read) or Input(read.address, (one,)) for one, read in zip((a, b), reads, strict=True)
    ]
    starts = given[0].address - a.address, given[1].address - b.address
    if starts[0] != starts[1]:
        first, second = (f"{text}, from byte {start} on" for text, start in zip(texts, starts, strict=True))
        return first, second
    layouts = [
        read.tensor.meta if read.tensor else one.region for one, read in zip((a, b), given, strict=True)
    ]
    first, second = (
        f"{text}, as {list(meta.shape)} with strides {list(meta.stride)}"
        for text, meta in zip(texts, layouts, strict=True)
    )
    return first, second


def input_with(write: Write, read: MemoryRead) -> Input | None:
    """The tensor with this write that was read."""
    return next((one for one in read.inputs if write in one.sources), None)


def operator_cause(a: Write | None, b: Write | None, runs: WhichRuns) -> OperatorCause:
    """An operator of one run or of both as a proven cause."""
    names = a.name if a else "", b.name if b else ""
    arguments = a.argument if a else "", b.argument if b else ""
    sites = a.site if a else None, b.site if b else None
    return OperatorCause(names, arguments, runs, proven=True, sites=sites)
