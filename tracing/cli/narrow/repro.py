"""`tracing repro`: write one recorded launch as a standalone script, and test it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from shlex import join, quote
from typing import Annotated

import typer
from rich.text import Text

from tracing.analyze.runs.recording_commands import recording
from tracing.cli.app import NARROW, RUNS, Json, Runs, app, err, out, spinner
from tracing.cli.options.launch_options import (
    ExpectedKernelOption,
    LaunchNumberOption,
    RankOption,
    chosen_launch,
)
from tracing.cli.options.named import OutputOption, RunArgument
from tracing.cli.options.opened import open_run
from tracing.cli.options.trust import Trust, consenting
from tracing.errors import Problem
from tracing.store.recorded_launch import RecordedLaunch


@app.command(rich_help_panel=NARROW)
def repro(
    name: RunArgument,
    launch: LaunchNumberOption,
    kernel: ExpectedKernelOption = None,
    rank: RankOption = None,
    output: OutputOption = None,
    times: Annotated[int, typer.Option(min=1, help="Number of executions.")] = 1,
    seconds: Annotated[float, typer.Option(help="Time limit of the executions.")] = 300.0,
    trust: Trust = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Write a launch and its inputs as a standalone script, and execute it once.

    Needs a run recorded with --keep-inputs.

    Example: tracing repro latest --launch 7 --kernel triton_poi_fused_mul_0

    Exit status: 0 if the script reproduces the recorded bits every time, 1 if it does not, 2 if it fails or
    the launch belongs to another kernel.
    """
    run = consenting(open_run(name, runs), trust)
    recorded = chosen_launch(run, launch, rank, kernel)
    _require_inputs(recorded)
    with spinner("importing torch"):
        from tracing.replay.repro import write_repro
    of_rank = "" if rank is None else f"-rank{rank}"
    written = write_repro(recorded, output or Path(f"repro-{run.name}-{launch}{of_rank}"))
    err.print(f"wrote {len(written.files)} files into {written.script.parent}")
    if recorded.missing:
        err.print(f"zeros replace contents that were not kept: {', '.join(recorded.missing)}")
    status, printed = _tried(written.script, times, seconds)
    whose = "" if rank is None else f" --rank {rank}"
    commands = [f"tracing replay {quote(str(run.path))} --launch {launch}{whose}"] if status == 1 else []
    if as_json:
        answer = {
            "run": str(run.path), "status": status, "kernel": recorded.launch.kernel_name, "launch": launch,
            "script": str(written.script), "files": [str(one) for one in written.files],
            "zeros": list(recorded.missing), "said": printed, "next": commands,
        }  # fmt: skip
        print(json.dumps(answer, indent=2))
        raise typer.Exit(status)
    out.print(Text(printed))
    for command in commands:
        out.print(Text(f"    next      {command}"))
    raise typer.Exit(status)


def _require_inputs(recorded: RecordedLaunch) -> None:
    if not recorded.missing or recorded.inputs:
        return
    index, info = recorded.launch.index, recorded.run
    command = recording(info, "--keep-inputs", "--launches", f"{index}:{index + 1}")
    check = f"tracing repro latest --launch {index} --kernel {quote(recorded.launch.kernel_name)}"
    raise Problem(
        f"the inputs of launch {index} were not kept: {', '.join(recorded.missing)}",
        f"record it with `{join(command)}`, then `{check}`",
    )


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
        return 1, f"{done.stdout}no repro: {script} runs, and produces other bits than the recorded ones"
    return 0, f"{done.stdout}a repro: {script}"
