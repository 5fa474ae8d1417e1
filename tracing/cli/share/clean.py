"""`tracing clean`: delete recorded runs."""

from __future__ import annotations

import json
import shutil
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from tracing import store
from tracing.cli.app import RUNS, SHARE, Json, Runs, app, err, out
from tracing.cli.options.completion import run_names
from tracing.errors import Problem


@app.command(rich_help_panel=SHARE)
def clean(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN…]", help="Runs by name or path.", autocompletion=run_names),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Delete all runs of the folder.")] = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Delete recorded runs.

    Keeps folders that are not runs, and runs that are still being recorded.

    Example: tracing clean latest

    Exit status: 0 if all runs were deleted, 2 if one was not.
    """
    if bool(names) == every:
        raise Problem("no run is named" if not names else "runs are named, and --all is given",
                      f"name runs, or give --all; {store.listing(runs)}")  # fmt: skip
    paths = store.recorded(runs) if every else [_path(one, runs) for one in names or ()]
    deleted: list[Path] = []
    kept: dict[str, str] = {}
    for path in paths:
        try:
            _delete(path)
        except (Problem, OSError) as problem:
            kept[str(path)] = str(problem)
            err.print(f"kept {path}: {problem}")
        else:
            deleted.append(path)
            if not as_json:
                out.print(f"deleted {path}")
    if as_json:
        print(json.dumps({"deleted": [str(one) for one in deleted], "kept": kept}, indent=2))
    raise typer.Exit(2 if kept else 0)


def _path(name: str, runs: Path) -> Path:
    known = store.recorded(runs)
    if name == "latest" and known:
        return known[-1]
    path = next((one for one in (runs / name, Path(name)) if (one / "run.json").is_file()), None)
    if path is None:
        near = get_close_matches(name, [one.name for one in known], n=3, cutoff=0.5)
        listed = store.listing(runs)
        raise Problem(
            f"{name} is no run, neither here nor below {runs}",
            f"nearest: {', '.join(near)}; {listed}" if near else listed,
        )
    return path


def _delete(path: Path) -> None:
    if path.is_symlink():
        raise Problem("it is a link", "delete it yourself")
    if store.being_recorded(path):
        raise Problem("a process still records it", "wait for its end")
    shutil.rmtree(path)
