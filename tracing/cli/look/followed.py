"""`tracing show --follow`: print the launches of a run while it is recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from rich.text import Text

from tracing import store
from tracing.analyze.runs.new_launches import DeletedLaunches, NewLaunches
from tracing.report.findings import ending_text
from tracing.report.run import heading_text, kernel_text
from tracing.report.text import Line, launch_text

NEWEST = 10  # launches that are printed first
_PAUSE = 0.5  # seconds
_SHARE = 10  # of the time, one part is spent on reading


def followed(run: store.Run, whole: bool, sleep: Callable[[float], None] = time.sleep) -> Iterator[Line]:
    """The lines of a run's last launches, then of new ones, until the recording has ended.

    whole -- begin with its first launch
    """
    yield from heading_text(run)
    launches, kernels, process = NewLaunches(None if whole else NEWEST), set[str](), ""
    ended = False
    while not ended:
        ended = not store.being_recorded(run.path)  # first: what is written meanwhile is read below
        began = time.monotonic()
        run = store.Run(run.path)
        for of, one in launches.read(run, ended=ended):
            if of != process and (process or len(run.processes()) > 1):
                yield Text(f"process {of.strip('-')}", "bold")
            process = of
            if isinstance(one, DeletedLaunches):
                what = f": launches {one.start}:{one.stop}: deleted before they were read"
                yield Text.assemble(("not shown", "yellow"), what)
                continue
            if one.kernel.hash not in kernels:
                kernels.add(one.kernel.hash)
                yield from kernel_text(one)
            yield from launch_text(one)
        if not ended:
            sleep(max(_PAUSE, _SHARE * (time.monotonic() - began)))
    yield ""
    yield from ending_text(run, whole=True)
