"""What every command shares: the application, its two consoles, and where runs are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

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
