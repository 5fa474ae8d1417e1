"""The arguments and options of `tracing bisect`, with their help."""

from __future__ import annotations

from typing import Annotated

import typer

from tracing.cli.options.completion import case_and_run_names
from tracing.cli.options.program_words import OPTIONS_FIRST

BisectedArgument = Annotated[
    str,
    typer.Argument(
        metavar="CASE | FILE.py [ARG]... | -m MODULE [ARG]... | RUN",
        help=f"A case, a program with its own arguments, or a recorded run. {OPTIONS_FIRST}",
        autocompletion=case_and_run_names,
    ),
]
CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- COMMAND]", help="Judges a build, as for `git bisect run`."),
]
LaunchOption = Annotated[int | None, typer.Option(help="RUN, without COMMAND: the launch to replay.")]
AtolOption = Annotated[float | None, typer.Option(min=0, help="RUN, without COMMAND: absolute tolerance.")]
RtolOption = Annotated[float | None, typer.Option(min=0, help="RUN, without COMMAND: relative tolerance.")]
BuildSecondsOption = Annotated[float, typer.Option(help="Time limit of a compile, COMMAND or replay.")]
RepeatJudgeOption = Annotated[
    int, typer.Option("--repeat-judge", min=1, help="Calls of a flaky COMMAND for each build.")
]
CrashOption = Annotated[bool, typer.Option("--crash", help="Bad: the compile dies or hangs as in the run.")]
NoVirtualGpuOption = Annotated[
    bool,
    typer.Option(
        "--no-virtual-gpu",
        help="PROGRAM: do not emulate a GPU: Inductor compiles C++ for tensors on the CPU.",
    ),
]
TimesOption = Annotated[
    int, typer.Option(min=1, help="CASE, PROGRAM: compiles that measure how often it goes wrong.")
]
GoodTorchOption = Annotated[
    str | None,
    typer.Option(metavar="V", help="CASE: compare with the compiler of torch V, which is right."),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Ignore cached builds and judgements.")]
