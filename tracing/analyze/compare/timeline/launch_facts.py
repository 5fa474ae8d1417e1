"""The records that only some launches have: exact accesses, accesses out of bounds, views read once more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from tracing.model import Access, OutOfBounds, Reread
from tracing.store import Run
from tracing.store.joins import in_step


class LaunchFacts:
    """These records of one process, asked for in launch order."""

    def __init__(self, run: Run, process: str) -> None:
        accesses = run.view(process, Access, Access)
        self._access: Callable[[int], Access | None] = in_step(accesses, _launch_of)
        self._outside = _grouped(run.view(process, OutOfBounds, OutOfBounds))
        self._rereads = _grouped(run.view(process, Reread, Reread))

    def of(self, launch: int) -> tuple[Access | None, tuple[OutOfBounds, ...], tuple[Reread, ...]]:
        """The records of a launch; call it with increasing indices."""
        return self._access(launch), self._outside(launch), self._rereads(launch)


L = TypeVar("L", OutOfBounds, Reread)


def _launch_of(access: Access | None) -> int:
    assert access is not None
    return access.launch


def _grouped(lines: Iterator[L]) -> Callable[[int], tuple[L, ...]]:
    # returns all lines of a launch; call it with increasing indices
    waiting = next(lines, None)

    def of(launch: int) -> tuple[L, ...]:
        nonlocal waiting
        launches = []
        while waiting is not None and waiting.launch <= launch:
            if waiting.launch == launch:
                launches.append(waiting)
            waiting = next(lines, None)
        return tuple(launches)

    return of
