"""What every command shares: the application, its two consoles, its progress bar, and where runs are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Record what torch.compile and Triton do, and find where it goes wrong. "
    "Exit status as diff(1): 0 nothing found, 1 a difference, 2 no answer.",
    rich_markup_mode="rich",
)
out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

Runs = Annotated[Path, typer.Option("--runs", help="Folder that holds the runs.")]
RUNS = Path("runs")


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal's standard error; what is given advances it by one."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    quiet = not err.is_terminal
    with Progress(*columns, console=err, transient=True, disable=quiet) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
