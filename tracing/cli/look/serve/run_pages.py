"""The pages of runs: written when they are asked for, and anew when a run has grown."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tracing.cli.look.serve.served_runs import ServedRuns, stamp_of
from tracing.cli.look.serve.started import start_process, stop_process
from tracing.errors import Problem

_SHARE = 4  # a page of a run that grows is written anew when this multiple of its last time has passed
_KEPT = 8  # pages


@dataclass(slots=True)
class _Page:
    path: Path
    stamp: str = ""  # of the runs that it shows; empty: it was not written yet
    seconds: float = 0.0  # that the last writing took
    written: float = 0.0  # time of its end
    lock: threading.Lock = field(default_factory=threading.Lock)  # one process at a time writes it


class RunPages:
    """Writes pages into a temporary folder, which is deleted at the end."""

    def __init__(self, runs: ServedRuns) -> None:
        self._runs = runs
        self._folder = tempfile.TemporaryDirectory(prefix="tracing-serve-")
        self._pages: dict[tuple[str, ...], _Page] = {}
        self._processes: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._numbers = 0

    def stamp(self, names: Sequence[str]) -> str:
        """What changes when the page of these runs is to be shown anew."""
        page, now, growing = self._page(names), *self._state(names)
        waits = growing and time.monotonic() < page.written + max(1.0, _SHARE * page.seconds)
        return page.stamp if page.stamp and waits else now

    def page(self, names: Sequence[str]) -> Path:
        """The page of these runs, as they are now. Raises Problem, with the reason, if there is none."""
        page = self._page(names)
        with page.lock:
            if page.stamp != self.stamp(names) or not page.path.exists():
                began = time.monotonic()
                page.stamp = self._write(page.path, [str(self._runs.path(name)) for name in names])
                page.written = time.monotonic()
                page.seconds = page.written - began
        return page.path

    def close(self) -> None:
        """End what is writing, and delete the pages."""
        for process in list(self._processes):
            stop_process(process)
        self._folder.cleanup()

    def _page(self, names: Sequence[str]) -> _Page:
        with self._lock:
            key = tuple(names)
            if key not in self._pages:
                if len(self._pages) >= _KEPT:
                    oldest = min(self._pages, key=lambda one: self._pages[one].written)
                    self._pages.pop(oldest).path.unlink(missing_ok=True)
                self._numbers += 1
                self._pages[key] = _Page(Path(self._folder.name, f"{self._numbers}.html"))
            return self._pages[key]

    def _state(self, names: Sequence[str]) -> tuple[str, bool]:
        states = [self._runs.state(name) for name in names]
        return stamp_of(states), any(one.growing for one in states)

    def _write(self, path: Path, runs: list[str]) -> str:
        # the stamp of the page
        module = "tracing.cli.look.serve.page_process"
        process = start_process([sys.executable, "-m", module, str(path), *runs])
        self._processes.add(process)
        try:
            stamp, errors = process.communicate()
        finally:
            self._processes.discard(process)
        if process.returncode:
            lines = errors.strip().splitlines() or [f"the page could not be written: {process.returncode}"]
            raise Problem("\n".join(lines[-2:]))
        return stamp.strip()
