"""`tracing opt`: passes over MLIR text, as triton-opt, on the wheel of Triton."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracing.cli.app import NARROW, app
from tracing.cli.tool_errors import as_a_tool
from tracing.errors import Problem

if TYPE_CHECKING:
    from tracing.compiler.opt.command_line import OptCommand


@app.command(context_settings={"ignore_unknown_options": True}, rich_help_panel=NARROW)
def opt(
    arguments: Annotated[
        list[str], typer.Argument(metavar="FILE|- [-PASS[=OPTIONS] | --pass-pipeline=TEXT | FLAG]...")
    ],
) -> None:
    """Run passes over MLIR text, as triton-opt does.

    A pass is a flag, `-tritongpu-pipeline="num-stages=3"`, or part of
    `--pass-pipeline='builtin.module(cse,canonicalize)'`; `--list-passes` lists the passes of this Triton.
    The other flags are triton-opt's: -split-input-file -verify-diagnostics -verify-each=0 -o
    -run-reproducer -debug -debug-only -dump-pass-pipeline -mlir-print-debuginfo; -mlir-print-ir-before and
    -after (with names, or -all), -after-change, -after-failure; -mlir-timing -mlir-pass-statistics;
    -mlir-pass-pipeline-crash-reproducer=FILE, -local-reproducer; and, with Triton 3.7 and later,
    -allow-unregistered-dialect, -mlir-print-local-scope and -mlir-elide-elementsattrs-if-larger=N. Other
    options of MLIR are refused. AMD's passes accept arch, gfx-arch and arch-generation-name for one
    another.

    Where Triton was built, or TRITON_OPT names it, that triton-opt runs instead; `--stand-in` forbids it.

    Example: tracing opt before.mlir -tritongpu-coalesce

    Exit status: as triton-opt's: 0, or 1 if the text, a pass or an option fails, or a diagnostic is not
    expected.
    """
    with as_a_tool():
        _opt(arguments)


def _opt(arguments: list[str]) -> None:
    from tracing.compiler.opt.command_line import command
    from tracing.compiler.opt.run import optimise
    from tracing.compiler.tools import triton_opt

    called = command(arguments)
    if called.list_passes:
        for line in _passes():
            print(line)
        return
    if not called.stand_in and (real := triton_opt()):
        os.execv(real, [real, *arguments])
    text = _read(called.file)
    outcome = optimise(text, "<stdin>" if called.file == "-" else called.file, called.settings)
    sys.stderr.write(outcome.stderr)
    _write(called, outcome.text)
    raise typer.Exit(0 if outcome.passed else 1)


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text()
    except UnicodeDecodeError:
        raise Problem(f"{file} is not MLIR text", "MLIR's bytecode is not read") from None


def _write(called: OptCommand, text: str) -> None:
    if called.output == "-":
        sys.stdout.write(text)
    else:
        Path(called.output).write_text(text)


def _passes() -> Iterator[str]:
    from tracing.compiler.adders import adders

    for one in adders().values():
        options = " ".join(parameter.option for parameter in one.parameters)
        yield f"-{one.name}" + (f"  {options}" if options else "")
