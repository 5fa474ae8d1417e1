"""`tracing repro`: write one recorded launch, or call of an operator, as a standalone script, and test it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from rich.text import Text

from tracing import store
from tracing.analyze.runs.outcomes import outcome_of
from tracing.analyze.runs.repetition import repetition
from tracing.cli.answers.recording_hints import latest, record_command
from tracing.cli.app import NARROW, RUNS, Json, Runs, app, err, out, spinner
from tracing.cli.options.launch_options import ExpectedKernelOption, RankOption, chosen_launch
from tracing.cli.options.named import RunArgument
from tracing.cli.options.opened import open_run
from tracing.cli.options.outputs import OutputFolderOption, chosen_output
from tracing.cli.options.trust import Trust, consenting
from tracing.cli.processes.new_recording import recorded_before
from tracing.errors import Problem
from tracing.model import LaunchLine, OutOfBounds
from tracing.store import rank_of
from tracing.store.recorded_launch import RecordedLaunch
from tracing.store.recorded_operator import RecordedOperator, recorded_operator

_ELSEWHERE = "--output DIR"
_CALLS = 10  # executions of an operator: one that is not deterministic seldom shows it at the second call


_OTHER_INPUT = ".safetensors does not hold what "  # as the script prints it


@dataclass(frozen=True, slots=True)
class WrittenScript:
    """A script, and the facts that the answer states about it."""

    script: Path
    files: tuple[Path, ...]
    facts: dict[str, Any]  # keys of --json: kernel, launch, operator, zeros, outside
    commands: tuple[str, ...] = ()  # to type next if the script writes other bits
    unfinished: bool = False  # a launch without results: it may have ended the program
    complete: Callable[[], tuple[Path, ...]] | None = None  # adds files of what a launch does not write


@app.command(rich_help_panel=NARROW)
def repro(
    name: RunArgument,
    launch: Annotated[int | None, typer.Option(help="The launch, by its number in the run.")] = None,
    operator: Annotated[
        int | None,
        typer.Option(
            help="Instead: the call of an operator outside of Triton, by its number in `show --operators`."
        ),
    ] = None,
    kernel: ExpectedKernelOption = None,
    rank: RankOption = None,
    output: OutputFolderOption = None,
    times: Annotated[
        int | None, typer.Option(min=1, help=f"Number of executions. Default: 1, of an operator {_CALLS}.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time limit of the executions.")] = 300.0,
    trust: Trust = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Write a launch, or a call of an operator, with its inputs as a standalone script, and execute it.

    Needs a run recorded with --keep-inputs, for an operator also with --operators digests. Without --output
    the folder is repro-RUN-LAUNCH, or repro-RUN-operatorN, in the current directory.

    Example: tracing repro demo-sound --launch 1

    Exit status: 0 if the script reproduces the recorded bits every time, or the error of a launch that
    failed; 1 if it does not, 2 if it fails otherwise or the launch belongs to another kernel.
    """
    run = consenting(open_run(name, runs), trust)
    if launch is not None and operator is None:
        written = _of_launch(chosen_launch(run, launch, rank, kernel), rank, output)
    elif operator is not None and launch is None:
        written = _of_operator(recorded_operator(run, operator, rank), rank, output)
    else:
        raise Problem("name one launch or one operator", "`--launch N`, or `--operator N`")
    _note(written)
    times = times or (1 if operator is None else _CALLS)
    error = _error(run, rank or 0) if written.unfinished else ""
    status, printed, added = _executed(written, times, seconds, error)
    commands = written.commands if status == 1 else ()
    if as_json:
        answer = {"run": str(run.path), "status": status, **written.facts, "script": str(written.script)}
        files = [str(one) for one in (*written.files, *added)]
        print(json.dumps({**answer, "files": files, "said": printed, "next": [*commands]}, indent=2))
        raise typer.Exit(status)
    out.print(Text(printed))
    for command in commands:
        out.print(Text(f"    next      {command}"))
    raise typer.Exit(status)


def _note(written: WrittenScript) -> None:
    err.print(f"wrote {_listed(written)} into {written.script.parent}")
    if zeros := written.facts["zeros"]:
        err.print(f"zeros replace contents that were not kept: {', '.join(zeros)}")
    for accesses in written.facts["outside"]:
        err.print(Text(f"the script lacks memory that the launch reads, so its bits may differ: {accesses}"))


def _executed(
    written: WrittenScript, times: int, seconds: float, error: str
) -> tuple[int, str, tuple[Path, ...]]:
    # the status, what was printed, and the files that were added for a second attempt
    status, printed = tried(written.script, times, seconds, error)
    added = written.complete() if status == 1 and written.complete is not None else ()
    if added:
        names = ", ".join(path.stem for path in added)
        err.print(f"the launch does not write all of {names}: the rest has its recorded content")
        status, printed = tried(written.script, times, seconds, error)
    return status, printed, added


def _of_launch(recorded: RecordedLaunch, rank: int | None, output: Path | None) -> WrittenScript:
    _require_inputs(recorded, output)
    with spinner("importing torch"):
        from tracing.replay.repro import unwritten_contents, write_repro
    run, launch = recorded.run, recorded.launch
    of_rank, whose = ("", "") if rank is None else (f"-rank{rank}", f" --rank {rank}")
    folder = output or chosen_output(Path(f"repro-{run.name}-{launch.index}{of_rank}"), _ELSEWHERE)
    files = write_repro(recorded, folder)

    def complete() -> tuple[Path, ...]:
        with spinner("executing the launch in the interpreter"):
            unwritten = unwritten_contents(recorded)
        if unwritten:
            write_repro(recorded, folder, unwritten)
        return tuple(folder / f"{name}.safetensors" for name in unwritten)

    facts = {
        "kernel": launch.kernel_name, "launch": launch.index, "operator": None,
        "zeros": list(recorded.missing), "outside": _read_outside(recorded, rank or 0),
    }  # fmt: skip
    replay = f"tracing replay {quote(str(run.path))} --launch {launch.index}{whose}"
    unfinished = all(arg.after is None for arg in launch.args)
    return WrittenScript(files.script, files.files, facts, (replay,), unfinished, complete)


def _read_outside(recorded: RecordedLaunch, rank: int) -> list[str]:
    # only the elements of each argument are kept, not the rest of the storage of a view
    index = recorded.launch.index
    processes = [one for one in recorded.run.processes(OutOfBounds) if rank_of(one) == rank]
    accesses = [one for process in processes for one in recorded.run.out_of_bounds(process)]
    loads = [one for one in accesses if one.launch == index and one.access == "load"]
    return [f"{one.what} ({one.where})" if one.where else one.what for one in loads]


def _of_operator(recorded: RecordedOperator, rank: int | None, output: Path | None) -> WrittenScript:
    run, call = recorded.run, recorded.call
    if recorded.missing:
        command = record_command(
            run, "--operators", "digests", "--keep-inputs", "--launches", f"{call.launch}:{call.launch + 1}"
        )
        check = f"tracing repro {latest(run)} --operator {call.index}{_into(output)}"
        raise Problem(
            f"the inputs of operator {call.index} were not kept",
            f"record it with `{command}`, then `{check}`",
        )
    with spinner("importing torch"):
        from tracing.replay.operator_repro import write_operator_repro
    of_rank = "" if rank is None else f"-rank{rank}"
    folder = output or chosen_output(Path(f"repro-{run.name}-operator{call.index}{of_rank}"), _ELSEWHERE)
    files = write_operator_repro(recorded, folder)
    facts: dict[str, Any] = {
        "kernel": call.name, "launch": None, "operator": call.index, "zeros": [], "outside": [],
    }  # fmt: skip
    return WrittenScript(files.script, files.files, facts)


def _require_inputs(recorded: RecordedLaunch, output: Path | None) -> None:
    if not recorded.missing or recorded.inputs:
        return
    run, index = recorded.run, recorded.launch.index
    why = f"the inputs of launch {index} were not kept: {', '.join(recorded.missing)}"
    of_it = f"--launch {index} --kernel {quote(recorded.launch.kernel_name)}{_into(output)}"
    anew = recorded_before(run)
    if anew is not None and not repetition(run, anew).kernels:
        raise Problem(why, f"a new recording has them: `tracing repro {quote(str(anew.path))} {of_it}`")
    command = record_command(run, "--keep-inputs", "--launches", f"{index}:{index + 1}")
    check = f"tracing repro {latest(run)} {of_it}"
    raise Problem(why, f"record it with `{command}`, then `{check}`{_numbered_anew(recorded)}")


def _listed(written: WrittenScript) -> str:
    # a folder, as of the interpreter for machines without a GPU, is one name
    names = {path.relative_to(written.script.parent).parts[0] for path in written.files}
    return ", ".join(sorted(names))


def _into(output: Path | None) -> str:
    return f" --output {quote(str(output))}" if output else ""


def _numbered_anew(recorded: RecordedLaunch) -> str:
    # threads may launch in another order
    run = recorded.run
    lines = (line for process in run.processes() for line in run.view(process, LaunchLine, LaunchLine))
    if len({line.thread for line in lines}) < 2:
        return ""
    show = f"tracing show {quote(str(run.path))} --launch {recorded.launch.index}"
    return f"; several threads launch, in any order: the inputs must have the digests of `{show}`"


def _error(run: store.Run, rank: int) -> str:
    # the type of the error with which the program ended; "": none
    outcome = outcome_of(run, rank)
    return outcome.detail.partition(":")[0] if outcome is not None and outcome.status == "failed" else ""


def tried(script: Path, times: int, seconds: float, error: str) -> tuple[int, str]:
    """Execute a written script: the exit status of the command, and what it prints.

    times, seconds -- number of executions, and their time limit
    error          -- type of the error with which the launch ended its program, "AssertFails"; "": none did
    """
    command = [sys.executable, str(script), str(times)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return 2, f"no repro: {script} took more than {seconds} s"
    if other := [line for line in done.stderr.splitlines() if _OTHER_INPUT in line]:
        return 2, f"no repro: {'; '.join(other)}: the run is damaged, or the input was not quiet"
    if "wrote the recorded bits" not in done.stdout:
        last = next(iter(done.stderr.strip().splitlines()[-1:]), f"exit status {done.returncode}")
        if error and last.partition(":")[0].rpartition(".")[2] == error:
            return 0, f"{last}\na repro of the error with which the program ended: {script}"
        return 2, f"no repro: {script} does not run: {last}"
    if done.returncode and "is not deterministic" in done.stdout:
        return 1, f"{done.stdout}a repro of results that differ: {script}"
    if done.returncode:
        return 1, f"{done.stdout}no repro: {script} runs, and produces other bits than the recorded ones"
    return 0, f"{done.stdout}a repro: {script}"
