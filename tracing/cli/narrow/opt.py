"""`tracing opt`: runs passes over MLIR text like triton-opt, on the wheel of Triton."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracing.cli.answers.tool_errors import TOOL_WORDS, ToolCommand, as_a_tool
from tracing.cli.app import NARROW, Json, app
from tracing.errors import Problem

if TYPE_CHECKING:
    from tracing.compiler.opt.command_line import OptCommand
    from tracing.compiler.opt.run import OptOutcome


@app.command(cls=ToolCommand, context_settings=TOOL_WORDS, rich_help_panel=NARROW)
def opt(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|- [-PASS[=OPTIONS] | --pass-pipeline=TEXT | FLAG]...",
            help="MLIR text, or - for standard input; then passes, in order, and flags.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Run passes over MLIR text, as triton-opt does.

    A pass is a flag, `-tritongpu-pipeline="num-stages=3"`, or part of
    `--pass-pipeline='builtin.module(cse,canonicalize)'`; `--list-passes` lists the passes of this Triton.
    The other flags are triton-opt's: -split-input-file -verify-diagnostics -verify-each=0 -o
    -run-reproducer -debug -debug-only -dump-pass-pipeline -mlir-print-debuginfo; -mlir-print-ir-before and
    -after (with names, or -all), -after-change, -after-failure; -mlir-timing -mlir-pass-statistics;
    -mlir-pass-pipeline-crash-reproducer=FILE, -local-reproducer; and, unless Triton is stripped,
    -allow-unregistered-dialect, -mlir-print-local-scope and -mlir-elide-elementsattrs-if-larger=N. Other
    options of MLIR are refused. AMD's passes accept arch, gfx-arch and arch-generation-name for one
    another.

    If Triton was built from source, or TRITON_OPT is set, the real triton-opt runs instead, unless
    `--stand-in` is given.

    Example: tracing passes demo-sound --kernel triton_poi_fused_mul_sigmoid_1#1 --pass tritongpu-coalesce
    --before | tracing opt - -tritongpu-coalesce

    Exit status: as triton-opt's: 0, or 1 if the text, a pass or an option fails, or a diagnostic is not
    expected.
    """
    with as_a_tool():
        from tracing.compiler.opt.command_line import command

        called = command(arguments)
        if called.list_passes:
            _print_passes(as_json)
            return
        outcome = _outcome(called, arguments, as_json)
        if as_json:
            status = 0 if outcome.passed else 1
            text = outcome.text if called.output == "-" else ""
            print(json.dumps({"status": status, "text": text, "messages": outcome.stderr}, indent=2))
        else:
            sys.stderr.write(outcome.stderr)
            sys.stdout.write(outcome.text if called.output == "-" else "")
        raise typer.Exit(0 if outcome.passed else 1)


def _outcome(called: OptCommand, arguments: list[str], as_json: bool) -> OptOutcome:
    from tracing.compiler.opt.run import OptOutcome, optimise
    from tracing.compiler.tools import triton_opt

    if not called.stand_in and (real := triton_opt()):
        if not as_json:
            os.execv(real, [real, *arguments])
        done = subprocess.run([real, *arguments], capture_output=True, text=True, check=False)
        return OptOutcome(done.stdout, done.stderr, done.returncode == 0)
    text = _read(called.file)
    outcome = optimise(text, "<stdin>" if called.file == "-" else called.file, called.settings)
    if called.output != "-":
        Path(called.output).write_text(outcome.text)
    return outcome


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text()
    except UnicodeDecodeError:
        raise Problem(f"{file} is not MLIR text", "MLIR's bytecode is not read") from None


def _print_passes(as_json: bool) -> None:
    from tracing.compiler.adders import adders

    passes = {one.name: [parameter.option for parameter in one.parameters] for one in adders().values()}
    if as_json:
        listed = [{"name": name, "options": options} for name, options in passes.items()]
        print(json.dumps({"passes": listed}, indent=2))
        return
    for name, options in passes.items():
        print(f"-{name}  {' '.join(options)}".rstrip())
