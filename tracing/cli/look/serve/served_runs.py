"""The runs of the served folder, and nothing else: no link, no path, no other folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracing import store
from tracing.errors import Problem
from tracing.report.run_json import summary_json

_SHOWN = 500  # runs that the list shows, the newest


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The state of a run's folder: it changes whenever something is written."""

    size: int  # bytes of all files of records
    count: int
    growing: bool

    @staticmethod
    def of(path: Path) -> RunFiles:
        """The present state of a folder."""
        sizes = [one.stat().st_size for one in os.scandir(path) if one.is_file(follow_symlinks=False)]
        return RunFiles(sum(sizes), len(sizes), store.being_recorded(path))

    def __str__(self) -> str:
        return f"{self.count}-{self.size}{'-recording' if self.growing else ''}"


def stamp_of(states: Sequence[RunFiles]) -> str:
    """What identifies the content of a page of runs in these states."""
    return " ".join(map(str, states))


class ServedRuns:
    """The runs below one folder, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._summaries: dict[tuple[str, str], dict[str, Any]] = {}

    def path(self, name: str) -> Path:
        """The folder of a run; raises Problem for a name that is none, and for a run with links."""
        if name not in self._names():
            raise Problem(f"there is no run {name} below {self.folder}", "the list has the names of all runs")
        path = self.folder / name
        for folder in (path, path / "blobs"):
            with os.scandir(folder) as entries:
                linked = next((one.name for one in entries if one.is_symlink()), None)
            if linked is not None:
                raise Problem(
                    f"{name} is not shown: {linked} is a link, which may lead outside of the folder"
                )
        return path

    def listed(self) -> Iterator[dict[str, Any]]:
        """The newest runs, the newest first, each as in `tracing list --json`."""
        newest = sorted(self._names().items(), key=lambda one: one[1], reverse=True)
        for name, _ in newest[:_SHOWN]:
            try:
                yield self._summary(name)
            except (Problem, OSError) as problem:
                yield {"name": name, "status": "damaged", "detail": getattr(problem, "problem", str(problem))}

    def state(self, name: str) -> RunFiles:
        """The state of a run's files."""
        return RunFiles.of(self.path(name))

    def _names(self) -> dict[str, float]:
        # with the time of run.json
        names = {}
        for one in os.scandir(self.folder) if self.folder.is_dir() else ():
            file = Path(one.path, "run.json")
            if one.is_dir(follow_symlinks=False) and file.is_file() and not file.is_symlink():
                names[one.name] = file.stat().st_mtime
        return names

    def _summary(self, name: str) -> dict[str, Any]:
        state = self.state(name)
        key = name, str(state)
        if key not in self._summaries:
            if len(self._summaries) > 4 * _SHOWN:
                self._summaries.clear()
            one = summary_json(store.Run(self.path(name)))
            unfinished = one["status"] == "unfinished"
            status = ("recording" if state.growing else "killed") if unfinished else one["status"]
            self._summaries[key] = {**one, "status": status, "detail": ""}
        return self._summaries[key]
