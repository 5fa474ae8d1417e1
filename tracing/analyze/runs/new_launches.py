"""Reads the launches of a run that is still being recorded, as they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tracing.digest.columns import Row
from tracing.model import KernelLaunch
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class DeletedLaunches:
    """Launches that were deleted before they were read."""

    process: str
    start: int
    stop: int


@dataclass(slots=True)
class _Position:
    # how far one process was read
    launch: int = 0  # the next one
    lines: int = 0  # of launches that need not be read once more
    batches: int = 0  # of digests, likewise


@dataclass(slots=True)
class NewLaunches:
    """Remembers which launches of a run were read."""

    newest: int | None = None  # begin with so many launches of each process; None: with all
    _positions: dict[str, _Position] = field(default_factory=dict)

    def read(self, run: Run, *, ended: bool) -> Iterator[tuple[str, KernelLaunch | DeletedLaunches]]:
        """The launches since the last call, with their processes.

        ended -- the run is complete; otherwise a launch waits for its digests, or for those of a later one

        Cost: a decompression of the run's launches and digests; decoding only of those that are new.
        """
        for process in run.processes():
            if process not in self._positions:
                self._positions[process] = self._first(run, process)
            yield from self._of_process(run, process, self._positions[process], ended)

    def _first(self, run: Run, process: str) -> _Position:
        if self.newest is None:
            return _Position()
        last = max((row.line.index for row in run.rows(process)), default=-1)
        return _Position(max(last + 1 - self.newest, run.first_launch(process)))

    def _of_process(
        self, run: Run, process: str, position: _Position, ended: bool
    ) -> Iterator[tuple[str, KernelLaunch | DeletedLaunches]]:
        first = run.first_launch(process)
        if position.launch < first and position.launch:
            yield process, DeletedLaunches(process, position.launch, first)
        joiner = run.joiner(process)
        rows = self._complete(run, process, position, ended)
        for row in rows:
            yield process, joiner.launch(row)

    def _complete(self, run: Run, process: str, position: _Position, ended: bool) -> list[Row]:
        # the files of a run in segments change at both ends: it is read from its beginning, which is near
        skips = not run.info.steps.drops
        rows = list(run.rows(process, position.lines if skips else 0, position.batches if skips else 0))
        if not ended and run.info.digests != "none":
            digested = [n for n, row in enumerate(rows) if row.batch is not None]
            rows = rows[: digested[-1] + 1] if digested else []
        batches = list(dict.fromkeys(id(row.batch) for row in rows if row.batch is not None))
        if skips and len(batches) > 1:  # the last batch may have launches that were not written yet
            last = batches[-1]
            before = next(n for n, row in enumerate(rows) if id(row.batch) == last)
            position.lines += before
            position.batches += len(batches) - 1
        fresh = [row for row in rows if row.line.index >= position.launch]
        if fresh:
            position.launch = fresh[-1].line.index + 1
        return fresh
