"""Write the page of some runs, in a process of its own: `python -m ...page_process FILE RUN...`.

Prints the stamp of the written page.

A hostile run can end or fill this process, not the server; and Python computes one thing at a time, so the
server would not answer meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tracing import store
from tracing.cli.app import err
from tracing.cli.look.gathered_report import gathered, open_for_report
from tracing.cli.look.serve.served_runs import RunFiles, stamp_of
from tracing.errors import Problem
from tracing.report.html import document


def main(words: Sequence[str]) -> int:
    """Write the page; returns 2, with the reason on standard error, if that is not possible."""
    file, *names = words
    paths = [Path(name) for name in names]
    before = [RunFiles.of(path) for path in paths]
    try:
        opened = [_opened(path, table=len(paths) > 2) for path in paths]
        growing = any(one.growing for one in opened)
        content = gathered(opened, sass=not growing)
    except Problem as problem:
        err.print(f"{problem.problem}\n  {problem.remedy}" if problem.remedy else problem.problem)
        return 2
    # IR that was derived for the page belongs to a run that has ended; a run that grows is shown anew
    ended = not any(one.growing for one in before)
    stamp = stamp_of([RunFiles.of(path) for path in paths] if ended else before)
    document.write(Path(file), content.title, content.index, content.chunks, stamp)
    print(stamp)
    return 0


def _opened(path: Path, *, table: bool) -> store.Run:
    run = store.Run(path)
    run.growing = store.being_recorded(path)
    if run.growing or table:  # to derive IR takes as long as to compile
        return run
    return open_for_report(str(path), path.parent)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
