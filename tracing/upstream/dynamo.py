"""Keep Dynamo away from code that is not the program's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch._dynamo import trace_rules


@contextmanager
def frames_skipped(paths: Sequence[str]) -> Iterator[None]:
    """While active, Dynamo neither compiles the frames of these files nor inlines their functions.

    paths -- how the files' paths begin: "/folder/", "/folder/file.py"
    """
    trace_rules.SKIP_DIRS.extend(paths)
    trace_rules._recompile_re()
    try:
        yield
    finally:
        for path in paths:
            trace_rules.SKIP_DIRS.remove(path)
        trace_rules._recompile_re()
