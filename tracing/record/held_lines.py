"""Writes the lines that a recording holds back when a fatal signal ends the program.

Lines are written many at a time. After a signal they go to `.held` files, which are read after the others of
their kind; see tracing/native/held_lines.h. Where nothing is compiled, they are lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from tracing.model import Storage, file_of
from tracing.native.extension import in_use
from tracing.store import RunWriter
from tracing.store.lines import HELD


@contextmanager
def written_after_signal(
    writer: RunWriter, launches: Sequence[object], operators: bytearray
) -> Iterator[None]:
    """While active, these lines, and the records that the writer holds back, survive a fatal signal.

    launches  -- a list with lines as bytes, without their ends
    operators -- whole lines
    """
    module = in_use("operator_observer") or in_use("launches")
    if module is None:
        yield
        return
    held: tuple[Sequence[object] | bytearray, ...] = (writer.held(Storage), launches, operators)
    for kind, lines in zip(HELD, held, strict=True):
        with suppress(ValueError):  # of recordings nested too deeply, or of too long a path
            module.keep(lines, f"{writer.path.resolve()}/{file_of(kind).held(writer.process)}")
    try:
        yield
    finally:
        for lines in held:
            module.release(lines)
