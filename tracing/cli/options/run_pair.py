"""Open the two runs that a command compares; refuse runs that are not comparable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.text import Text

from tracing import store
from tracing.analyze.runs.compilers import says_nothing_of_compilers
from tracing.analyze.runs.program_differences import incomparable
from tracing.cli.app import out
from tracing.cli.options.completion import run_names
from tracing.cli.options.opened import open_run
from tracing.errors import Problem
from tracing.report.run import difference_of_infos

RunPair: TypeAlias = tuple[store.Run, store.Run]
First = Annotated[
    str,
    typer.Argument(
        metavar="A",
        help='A run by path or name, or "latest"; "latest~1" is the one before.',
        autocompletion=run_names,
    ),
]
Second = Annotated[
    str, typer.Argument(metavar="B", help="The run to compare it with.", autocompletion=run_names)
]
Anyway = Annotated[
    bool, typer.Option("--anyway", help="Accept runs of different cases, versions or targets.")
]


def open_pair(a: str, b: str, runs: Path, *, anyway: bool, quiet: bool) -> RunPair:
    """Open two runs, and print how their environments differ; see `require_comparable`."""
    pair = open_run(a, runs), open_run(b, runs)
    require_comparable(pair, anyway=anyway, quiet=quiet)
    return pair


def require_comparable(pair: RunPair, *, anyway: bool, quiet: bool) -> None:
    """Refuse runs of different programs, and print how the environments of others differ.

    anyway -- accept runs of different cases, versions or targets
    quiet  -- print nothing

    Raises Problem if the runs are of different cases, versions or targets, unless `anyway`.
    """
    different = incomparable(pair[0].info, pair[1].info)
    if different and not anyway:
        raise Problem(f"the runs are of different {different}", "compare them all the same: `--anyway`")
    for line in _differences(pair) if not quiet else ():
        out.print(line)
    compilers = [(one.info.environment.triton, one.info.environment.target) for one in pair]
    nothing = says_nothing_of_compilers(*pair) if compilers[0] != compilers[1] else None
    if nothing is not None and not quiet:
        note = f": {nothing.sentence}; their passes do: `{nothing.command}`"
        out.print(Text.assemble(("note", "yellow"), note))


def _differences(pair: RunPair) -> Iterator[str | Text]:
    yield from difference_of_infos(pair[0].info, pair[1].info)
