"""`tracing bisect --crash`: the pass in which a compile crashes, and the earlier pass that provokes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

from tracing import store
from tracing.analyze.bisect import layers
from tracing.analyze.bisect.crash import CompileCrash, CrashEvent, Hangs, Provoked
from tracing.analyze.bisect.search import BuildTried
from tracing.analyze.bisect.search_events import Building, Searching
from tracing.cli.app import err, out, progress, silent, spinner
from tracing.cli.narrow.bisect.crash_search import CrashSearch
from tracing.model import Compilation
from tracing.report.bisect import crash as report
from tracing.report.text import Line


def crash(run: store.Run, chosen: Compilation, seconds: float, repeat: int, *, as_json: bool) -> int:
    """Search, print, and return the exit status: 0 if the compile does not crash, 1 if it does."""
    search = CrashSearch(run, chosen, seconds, repeat)
    with ExitStack() as quiet:
        if as_json:
            quiet.enter_context(silent())
        answers = [*_printed(search.events(), chosen.kernel_name, search.where)]
        if not answers:
            out.print(f"{chosen.kernel_name} compiles, and takes less than {seconds:g} s")
    status = 1 if answers else 0
    if as_json:
        answer = {"run": str(run.path), "status": status, "kernel": chosen.kernel_name}
        print(json.dumps({**answer, **report.crash_json(answers)}, indent=2))
    return status


def _printed(events: Iterable[CrashEvent], kernel: str, where: str) -> Iterator[CompileCrash | Provoked]:
    # prints each event, and yields those that are part of the answer
    advance: Callable[[], None] = lambda: None  # noqa: E731
    with ExitStack() as display:  # a status or a progress bar is shown until the next event
        for event in events:
            if isinstance(event, BuildTried):
                advance()
                continue
            display.close()
            if isinstance(event, Building):
                display.enter_context(spinner(event.what))
            elif isinstance(event, Searching):
                advance = display.enter_context(progress(event.what, event.most))
            elif isinstance(event, Hangs):
                err.print(report.hangs_text(event, kernel))
            else:
                for line in _text(event, kernel, where):
                    out.print(line)
                yield event


def _text(event: CompileCrash | Provoked, kernel: str, where: str) -> Iterable[Line]:
    if isinstance(event, CompileCrash):
        return report.dies_text(event, kernel)
    llvm = " --llvm" if event.layer == layers.LLVM else ""
    index = event.step.index if event.step else -1
    return report.provoked_text(event, {"what it did": f"tracing passes {where}{llvm} --pass {index}"})
