"""`tracing debug`: gdb at a pass, in a terminal or in VSCode."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tracing import environment, store
from tracing.analyze.passes import pass_table as analysis
from tracing.analyze.passes.line_changes import changing_passes, compilation_of_line
from tracing.attach import permission
from tracing.attach.compiling import WantedStop, wanted_of
from tracing.attach.terminal import Gdb, debugged, foreground, gdb_of_this_machine
from tracing.cli.answers.wheel_source import warn_without_source
from tracing.cli.app import DEBUG, RUNS, Runs, app, err
from tracing.cli.debug.known_pass import require_pass
from tracing.cli.options.case_or_run import names_case
from tracing.cli.options.chosen_kernel import chosen_kernel
from tracing.cli.options.completion import case_and_run_names
from tracing.cli.options.derived import open_derived, pass_on_recorded_ir
from tracing.cli.options.named import TargetOption
from tracing.cli.options.option_record import with_option_records
from tracing.cli.options.program_words import (
    OPTIONS_FIRST,
    ProgramOrRunCommand,
    is_program,
    program_of,
    runs_program,
)
from tracing.cli.options.stop_options import StopOptions
from tracing.cli.options.trust import Trust
from tracing.environment import stops
from tracing.errors import Problem
from tracing.model.chips import DEFAULT_TARGET

GENERATOR = Path(__file__).parents[3] / "vscode" / "generate.py"


@app.command(rich_help_panel=DEBUG, cls=ProgramOrRunCommand)
@with_option_records
def debug(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN | CASE | FILE.py [ARG]... | -m MODULE [ARG]...",
            help="A recorded run; or a case, or a program with its own arguments, to run now. "
            f"{OPTIONS_FIRST}",
            autocompletion=case_and_run_names,
        ),
    ],
    where: StopOptions,
    target: TargetOption = DEFAULT_TARGET,
    ex: Annotated[
        list[str] | None,
        typer.Option("--ex", metavar="COMMAND", help="Run this gdb command at the stop, then leave gdb."),
    ] = None,
    vscode: Annotated[
        bool, typer.Option("--vscode", help="Write it into .vscode/launch.json, and open VSCode.")
    ] = False,
    trust: Trust = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the stop as one JSON object: docs/json.md; start nothing.")
    ] = False,
    runs: Runs = RUNS,
) -> None:
    """Stop gdb at the first instruction of a compiler pass, in its C++.

    Of a run, executes only this pass, on its recorded IR. A case or a program is run, and each process that
    compiles stops. At the stop: `print-op`, `pass-info`, `py-where`; `help triton` lists all commands.

    Example: tracing debug demo-sound --kernel triton_poi_fused_mul_sigmoid_1#1 --pass tritongpu-coalesce

    Exit status: 0, or 2 if the pass was not reached.
    """
    _require_quoted(ex or (), words, runs)
    live = runs_program(words, runs)
    if live:
        words, wanted = _live(words, where, target)
    else:
        words, wanted = _recorded(words[0], runs, where, trust)
    command = [sys.executable, "-m", "tracing", "execute", *words]
    if as_json:
        stop = {"kernel": wanted.kernel, "stage": wanted.stage, "pass": wanted.name}
        print(json.dumps({"stop": stop, "command": command}, indent=2))
    elif vscode:
        _preset(words, wanted, "live" if live else "replay")
    else:
        gdb = gdb_of_this_machine(ex)
        warn_without_source()
        raise typer.Exit(2 if _in_terminal(gdb, command, wanted, live=live) else 0)


def _require_quoted(commands: Sequence[str], words: Sequence[str], runs: Path) -> None:
    # words after or before the run or the case belong to a gdb command, if there is one
    if not commands or len(words) < 2 or is_program(words):
        return
    rest = [word for word in words if not (is_program([word]) or _is_name(word, runs))]
    if len(rest) == len(words) - 1:
        command = shlex.quote(" ".join([commands[-1], *rest]))
        remedy = f"a gdb command of several words needs quotes: --ex {command}"
        raise Problem(f"neither a run nor a case: {' '.join(rest)}", remedy)


def _is_name(word: str, runs: Path) -> bool:
    try:
        names_case(word, runs)
    except Problem:
        return False
    return True


def _in_terminal(gdb: Gdb, command: list[str], wanted: WantedStop, *, live: bool) -> int:
    folder = stops.stop_folder()
    variables = stops.stopping(str(wanted), folder)
    try:
        if live:
            own = environment.with_variables(variables)
            debugged(command, own, folder, wanted, gdb, _progress(time.perf_counter()))
            return 0  # it stopped, however the program ended after that
        permission.require_own()
        return foreground(gdb.launch(command, variables, wanted))
    except KeyboardInterrupt:
        err.print("the program and its processes were ended; a debugged program leaves no run")
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _live(words: list[str], where: StopOptions, target: str) -> tuple[list[str], WantedStop]:
    # the words of `tracing execute` and the stop, of a case or a program that is run
    program_of(words)
    if where.line is not None:
        remedy = f"record one with `tracing run {shlex.join(words)}`, then name it"
        raise Problem("--line needs a recorded run", remedy)
    if not where.which:
        listed = "`tracing passes RUN --kernel KERNEL` lists those of a kernel"
        raise Problem("no pass is named", f"name one with --pass; {listed}")
    require_pass(where.which)
    return ["--target", target, *words], wanted_of(f"{where.kernel or ''}:{where.stage or ''}:{where.which}")


def _recorded(name: str, runs: Path, where: StopOptions, trust: bool) -> tuple[list[str], WantedStop]:
    # the words of `tracing execute` and the stop, of a run
    if where.line is not None:
        run = open_derived(name, runs, trust=trust)
        where = _of_line(run, where, where.line)
    else:
        run = open_derived(name, runs, where.kernel, where.which, where.stage, trust=trust)
    if where.which is None:
        raise Problem("no pass is named", "name one with --pass, or a Python line with --line FILE:LINE")
    chosen = chosen_kernel(run, where.kernel)
    one = analysis.find_pass(analysis.passes_of(run, chosen), where.which, where.stage)
    words = [str(run.path.resolve()), "--kernel", chosen.hash, "--pass", str(one.index)]
    if trust:
        words.append("--trust")
    else:
        run.require_trust(pass_on_recorded_ir(one))
    return words, WantedStop(chosen.kernel_name, one.stage, one.name)


def _of_line(run: store.Run, where: StopOptions, line: str) -> StopOptions:
    # the kernel, pass and stage where what a line became changes; --pass chooses among several passes
    chosen = compilation_of_line(run, where.kernel, line)
    passes = [one for one in changing_passes(run, chosen, line) if where.stage in (None, one.stage)]
    if not passes:
        raise Problem(
            f"no pass of {chosen.kernel_name} changed what {line} became",
            f"`tracing line {shlex.quote(str(run.path))} {line}` shows what it became",
        )
    which = where.which or analysis.telling_pass(passes) or passes[0].name
    one = analysis.find_pass(passes, which, where.stage)
    names = ", ".join(other.name for other in passes)
    err.print(Text(f"{line} is in {chosen.kernel_name}; it was changed by {names}; --pass chooses another"))
    return StopOptions(str(one.index), chosen.hash, one.stage)


def _preset(words: list[str], wanted: WantedStop, kind: str) -> None:
    if not GENERATOR.exists():
        raise Problem(f"there is no {GENERATOR}", "run it in a checkout of this project")
    command = [sys.executable, "-m", "vscode.generate", f"--{kind}", str(wanted), "--", *words]
    if subprocess.run(command, cwd=GENERATOR.parents[1], check=False).returncode:
        raise typer.Exit(2)
    code = next(filter(None, map(shutil.which, ("code", "codium", "code-server"))), None)
    if code is not None:
        subprocess.run([code, str(GENERATOR.parents[1])], check=False)


def _progress(started: float) -> Callable[[str], None]:
    def progress(stage: str) -> None:
        err.print(Text.assemble((f"{time.perf_counter() - started:6.1f} s", "dim"), f"  {stage}"))

    return progress
