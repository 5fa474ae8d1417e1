"""Keep the answer of a command in the run that it is about: `tracing report` shows it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import Annotated, Any

import typer

from tracing import store
from tracing.cli.app import RUNS, err, out
from tracing.cli.options.completion import run_names
from tracing.cli.options.opened import open_run
from tracing.environment import version_text
from tracing.errors import Problem
from tracing.model import KeptAnswer
from tracing.model.redaction import redacted_arguments, redacted_text

_LINES = 500  # of an answer that are kept

IntoOption = Annotated[
    str | None,
    typer.Option(
        metavar="RUN",
        help="Keep the answer in this run, too: `tracing report` shows it.",
        autocompletion=run_names,
    ),
]


def run_for_answer(into: str | None, runs: Path = RUNS) -> store.Run | None:
    """The run of --into; raises Problem if there is none, before the command takes its time."""
    return None if into is None else open_run(into, runs)


def require_run_of(run: store.Run | None, case: str) -> None:
    """Raise Problem if the run of --into is of another case or program; None: --into is not given."""
    if run is not None and run.info.case != case:
        raise Problem(
            f"--into names a run of {run.info.case}, and the answer is about {case}",
            f"name a run of {case}, or leave it out",
        )


def keep_answer(run: store.Run, name: str, status: int, lines: Iterable[object], **facts: Any) -> None:
    """Append an answer to a run. A run that cannot be written stays as it is; a note on stderr says so.

    name  -- of the command
    lines -- that it printed, or would without --json
    facts -- further fields of `KeptAnswer`
    """
    kept = [redacted_text(str(one)) for line in lines for one in str(line).splitlines()]
    more = [f"… {len(kept) - _LINES} more lines"] if kept[_LINES:] else []
    answer = KeptAnswer(
        name,
        typed_command(),
        version_text("debug-triton"),
        store.now(),
        status,
        (*kept[:_LINES], *more),
        **facts,
    )
    try:
        with closing(store.reopened(run.path)) as writer:
            writer.append(answer)
    except OSError as error:
        err.print(f"the answer is not kept in {run.path}: {error.strerror}")


def typed_command() -> str:
    """The command line of this process, without secrets."""
    return join(["tracing", *redacted_arguments(sys.argv[1:])])


@dataclass(slots=True)
class Answering:
    """A command that answers by what it prints."""

    run: store.Run | None  # that keeps the answer; None: none does
    kernel: str = ""  # that the answer is about
    launch: int | None = None  # of this kernel
    rank: int = 0
    headline: str = ""  # the answer in a line, before what is printed
    status: int = 2

    def about(self, run: store.Run, kernel: str) -> None:
        """The answer is about a kernel of this run, which keeps it unless the user named another run."""
        self.run, self.kernel = self.run or run, kernel


@contextmanager
def printed_answer(name: str, run: store.Run | None) -> Iterator[Answering]:
    """Keeps what `out` prints, also while --json silences it; nothing if an exception ends the command.

    name -- of the command
    run  -- the run that the answer is about, or that of --into
    """
    answering, lines = Answering(run), list[str]()
    out.listeners.append(lines.append)
    try:
        yield answering
    finally:
        out.listeners.pop()
    if answering.run is not None:
        kept, commands = _without_next([answering.headline, *lines] if answering.headline else lines)
        facts = {"kernel": answering.kernel, "launch": answering.launch, "rank": answering.rank}
        keep_answer(answering.run, name, answering.status, kept, next=commands, **facts)


def _without_next(lines: Iterable[str]) -> tuple[list[str], tuple[str, ...]]:
    kept: list[str] = []
    commands: list[str] = []
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        (commands if word == "next" else kept).append(rest.strip() if word == "next" else line)
    return kept, tuple(commands)


def finite_cells(heat: Iterable[Iterable[float]]) -> tuple[tuple[float | None, ...], ...]:
    """A heat map as a record holds it."""
    return tuple(tuple(value if math.isfinite(value) else None for value in row) for row in heat)
