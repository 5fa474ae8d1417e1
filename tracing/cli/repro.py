"""`tracing repro`: one recorded launch as a script of its own, which is tried before it is handed out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from tracing import store
from tracing.analyze.repro import write_repro
from tracing.cli.app import RUNS, Runs, app, err, out


@app.command()
def repro(
    name: Annotated[str, typer.Argument(metavar="RUN", help='A run by path or name, or "latest".')],
    launch: Annotated[int, typer.Option(help="The launch, by its number in the run.")],
    rank: Annotated[int | None, typer.Option(help="Whose launch, in the run of a job.")] = None,
    to: Annotated[Path | None, typer.Option(metavar="DIR", help="Where it is written.")] = None,
    times: Annotated[int, typer.Option(min=1, help="How often it is tried.")] = 1,
    seconds: Annotated[float, typer.Option(help="What trying it may take.")] = 300.0,
    runs: Runs = RUNS,
) -> None:
    """Write a launch as a script with its inputs, and run that in a process of its own.

    Wants a run recorded with --keep-inputs. Exit status 0 if the script leaves the recorded bits every time,
    1 if it leaves others, 2 if it does not run.
    """
    run = store.open_run(name, runs)
    of_rank = "" if rank is None else f"-rank{rank}"
    written = write_repro(run, launch, to or Path(f"repro-{run.name}-{launch}{of_rank}"), rank)
    for file in written.files:
        err.print(f"wrote {file}", markup=False)
    if written.missing:
        err.print(f"zeros stand for what was not kept: {', '.join(written.missing)}", markup=False)
    status, told = _tried(written.script, times, seconds)
    out.print(told, markup=False)
    raise typer.Exit(status)


def _tried(script: Path, times: int, seconds: float) -> tuple[int, str]:
    command = [sys.executable, str(script), str(times)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return 2, f"no repro: {script} took more than {seconds} s"
    if "replays left the recorded bits" not in done.stdout:
        last = next(iter(done.stderr.strip().splitlines()[-1:]), f"exit status {done.returncode}")
        return 2, f"no repro: {script} does not run: {last}"
    if done.returncode:
        return 1, f"{done.stdout}no repro: {script} runs, and leaves other bits than were recorded"
    return 0, f"{done.stdout}a repro: {script}"
