"""The failure of a case as text: the source around the line that failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.text import Text

from tracing.model import Blob, Failure

_AROUND = 3  # lines of source, on each side


def failure_text(failure: Failure, text: Callable[[Blob], str]) -> Iterator[Text]:
    """The source of the kernel, or the generated code, around the line that failed.

    text -- the content of a blob
    """
    if not failure.source:
        return
    what = "generated code" if failure.kind in ("generated code", "kernel", "C++") else "source"
    yield Text(f"the {what} that failed is kept: blobs/{failure.source}.zst, line {failure.line}")
    lines = text(failure.source).splitlines()
    first, last = max(1, failure.line - _AROUND), min(len(lines), failure.line + _AROUND)
    for number in range(first, last + 1):
        mark = ">" if number == failure.line else " "
        yield Text(f"  {mark} {number:>5}  {lines[number - 1]}", "bold" if mark == ">" else "")
