"""What a command answered about a run, kept in the run for `tracing report`."""

from __future__ import annotations

from tracing.model.record import Record


class AnswerTable(Record, frozen=True):
    """A table of an answer, as it is shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class AnswerBars(Record, frozen=True):
    """Measured values of an answer, one bar each."""

    title: str
    unit: str  # "ms"
    bars: tuple[tuple[str, float], ...]


class AnswerHeat(Record, frozen=True):
    """Where the errors of a tensor are: the largest error of each cell of a grid."""

    title: str
    cells: tuple[tuple[float | None, ...], ...]  # None: not finite


class KeptAnswer(Record, frozen=True, file="answers"):
    """An answer of a command; a later one does not replace it."""

    name: str  # "judge", also if `tracing run --judge` was typed; "replay --check-memory"
    command: str  # as typed, without secrets
    version: str  # of debug-triton
    asked: str  # time in UTC, "2026-11-23T08:00:00Z"
    status: int  # exit status of the command
    lines: tuple[str, ...]  # that it printed
    next: tuple[str, ...] = ()  # commands to type next
    rank: int = 0
    launch: int | None = None  # the launch that it accuses, or is about
    kernel: str = ""  # of that launch
    tables: tuple[AnswerTable, ...] = ()
    bars: tuple[AnswerBars, ...] = ()
    heat: tuple[AnswerHeat, ...] = ()
