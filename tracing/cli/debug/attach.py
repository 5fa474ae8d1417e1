"""`tracing attach`: gdb on a process, selected by what it compiles."""

from __future__ import annotations

import json
from shlex import quote
from typing import Annotated, Any

import typer
from rich.text import Text

from tracing.attach import permission
from tracing.attach.compiling import WantedStop, wanted_of
from tracing.attach.processes import Compiler, compilers
from tracing.attach.terminal import foreground, gdb_of_this_machine
from tracing.cli.answers.wheel_source import warn_without_source
from tracing.cli.app import DEBUG, app, err, out
from tracing.cli.debug.known_pass import require_pass
from tracing.environment.stops import LAUNCH
from tracing.errors import Problem

_START = (
    "start one with `tracing debug CASE --pass NAME`; or one that waits for gdb: "
    f"`TRACING_STOP='*:ttgir:tritongpu-coalesce' PYTHONPATH={quote(str(LAUNCH))} python …`"
)


@app.command(rich_help_panel=DEBUG)
def attach(
    pid: Annotated[
        int | None, typer.Argument(metavar="[PID]", help="The process; default: the one that waits.")
    ] = None,
    which: Annotated[str, typer.Option("--pass", help="Continue to this pass; a glob.")] = "",
    ex: Annotated[
        list[str] | None,
        typer.Option("--ex", metavar="COMMAND", help="Run this gdb command at the stop, then leave gdb."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="List the processes as one JSON object: docs/json.md; attach to none."),
    ] = False,
) -> None:
    """Attach gdb to a process that has Triton loaded; without PID, to the one that waits for gdb.

    Prints what each such process compiles, and the reason if the system refuses to attach.

    Example: tracing attach --json

    Exit status: 0, or 2 if gdb could not attach, or the process does not exist or has no Triton loaded.
    """
    if which:
        require_pass(which)
    processes = compilers()
    if pid is not None:
        processes = [_loaded(pid, processes)]
    if as_json:
        print(json.dumps({"processes": [_entry(one) for one in processes]}, indent=2))
        return
    chosen = processes[0] if pid is not None else _only(processes)
    permission.require(chosen.pid)
    gdb = gdb_of_this_machine(ex)
    warn_without_source()
    wanted = chosen.now.wanted if chosen.now else ""
    raise typer.Exit(2 if foreground(gdb.attach(chosen.pid, _stop(wanted, which))) else 0)


def _loaded(pid: int, processes: list[Compiler]) -> Compiler:
    for one in processes:
        if one.pid == pid:
            return one
    permission.require(pid)  # another user's process shows not what it has loaded
    raise Problem(f"process {pid} has no Triton loaded", "`tracing attach --json` lists those that have")


def _stop(wanted: str, which: str) -> WantedStop:
    stop = wanted_of(wanted)
    return WantedStop(stop.kernel, stop.stage, which) if which else stop


def _line(one: Compiler) -> str:
    role = "Inductor worker" if one.worker else one.command[:60]
    doing = "compiles nothing"
    if one.now is not None:
        doing = f"{'waits in' if one.waiting else 'compiled last'} {one.now.kernel}, {one.now.stage}"
    return f"{one.pid:>8}  {doing}  {f'traced by {one.tracer}  ' if one.tracer else ''}{role}"


def _entry(one: Compiler) -> dict[str, Any]:
    return {
        "pid": one.pid,
        "command": one.command,
        "worker": one.worker,
        "waiting": one.waiting,
        "tracer": one.tracer or None,
        "kernel": one.now.kernel if one.now else None,
        "stage": one.now.stage if one.now else None,
    }


def _only(processes: list[Compiler]) -> Compiler:
    if not processes:
        raise Problem("no process of yours has Triton loaded", _START)
    choice = [one for one in processes if one.waiting] or [one for one in processes if not one.tracer]
    if len(choice) != 1:
        for one in processes:
            err.print(Text(_line(one)))
        which = (
            "wait for gdb" if choice and choice[0].waiting else "have Triton loaded, and none waits for gdb"
        )
        raise Problem(
            f"{len(choice) or len(processes)} processes {which}", "choose one: `tracing attach PID`"
        )
    out.print(Text(_line(choice[0])))
    return choice[0]
