"""The cases that the page started: their processes, what they print, and the runs that they write."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracing import store
from tracing.cli.look.serve.case_request import CaseRequest
from tracing.cli.look.serve.started import start_process, stop_process
from tracing.errors import Problem
from tracing.report.control_characters import printable

_AT_ONCE = 4  # cases
_KEPT = 20  # cases that have ended
_LINES = 40  # of output that the page shows


@dataclass(slots=True)
class StartedCase:
    """A command that the page started."""

    number: int
    command: str
    process: subprocess.Popen[str]
    known: frozenset[str]  # runs that were there before
    output: list[str] = field(default_factory=list)  # lines of its output
    stopped: bool = False
    run: str | None = None  # the name of the run that it writes
    settled: bool = False  # it has ended, and its run was sought afterwards

    @property
    def status(self) -> int | None:
        """Its exit status; None: it runs."""
        return self.process.poll()


class CaseProcesses:
    """Starts and stops cases; called by the thread of the server only."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._cases: list[StartedCase] = []
        self._count = 0

    def start(self, request: CaseRequest) -> StartedCase:
        """Start a case. Raises Problem for a malformed request, and if too many cases run."""
        words = request.words(self._runs)
        if sum(one.status is None for one in self._cases) >= _AT_ONCE:
            raise Problem(f"{_AT_ONCE} cases are running", "wait for one, or stop one")
        self._count += 1
        known = frozenset(path.name for path in store.recorded(self._runs))
        process = start_process([sys.executable, "-m", "tracing", *words], **request.variables)
        one = StartedCase(self._count, request.typed(self._runs), process, known)
        for stream in (process.stdout, process.stderr):
            threading.Thread(target=_collect, args=(stream, one.output), daemon=True).start()
        self._cases = [*self._cases[-_KEPT:], one]
        return one

    def stop(self, number: int) -> None:
        """Interrupt a case, as Ctrl-C does; raises Problem if there is none of this number."""
        for one in self._cases:
            if one.number == number:
                one.stopped = one.stopped or one.status is None
                threading.Thread(target=stop_process, args=(one.process,), daemon=True).start()
                return
        raise Problem(f"no case {number} was started")

    def close(self) -> None:
        """End every case."""
        running = [one.process for one in self._cases if one.status is None]
        stops = [threading.Thread(target=stop_process, args=(one,)) for one in running]
        for one in stops:
            one.start()
        for one in stops:
            one.join()

    def listed(self) -> Iterator[dict[str, Any]]:
        """The cases, the latest first."""
        for one in reversed(self._cases):
            if one.run is None and not one.settled:
                one.settled = one.status is not None
                one.run = self._run_of(one)
            yield {
                "number": one.number, "command": one.command, "status": one.status, "stopped": one.stopped,
                "run": one.run, "said": [printable(line) for line in one.output[-_LINES:]],
            }  # fmt: skip

    def _run_of(self, one: StartedCase) -> str | None:
        # the new run that a process of its group writes, or wrote: its files are named by that process
        for path in reversed(store.recorded(self._runs)):
            if path.name in one.known:
                continue
            if str(path) in one.output or any(_in_group(pid, one.process.pid) for pid in _writers(path)):
                return path.name
        return None


def _collect(stream: Any, lines: list[str]) -> None:
    for line in stream:
        lines.append(line.rstrip())
        del lines[: -10 * _LINES]


def _writers(run: Path) -> set[int]:
    names = (path.name.partition(".ndjson")[0].rpartition("-")[2] for path in run.glob("*.ndjson*"))
    return {int(pid) for pid in names if pid.isdecimal()}


def _in_group(pid: int, group: int) -> bool:
    try:
        return os.getpgid(pid) == group
    except ProcessLookupError:
        return False
