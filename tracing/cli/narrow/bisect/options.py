"""The arguments and options of `tracing bisect`, with their help."""

from __future__ import annotations

from typing import Annotated

import typer

CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- COMMAND]", help="Judges a build, as for `git bisect run`."),
]
LaunchOption = Annotated[int | None, typer.Option(help="Without COMMAND: the launch to replay.")]
AtolOption = Annotated[float | None, typer.Option(help="Without COMMAND: absolute tolerance.")]
RtolOption = Annotated[float | None, typer.Option(help="Without COMMAND: relative tolerance.")]
BuildSecondsOption = Annotated[float, typer.Option(help="Time limit of a compile, COMMAND or replay.")]
RepeatJudgeOption = Annotated[
    int, typer.Option("--repeat-judge", min=1, help="Calls of a flaky COMMAND for each build.")
]
CrashOption = Annotated[bool, typer.Option("--crash", help="Bad: the compile dies or hangs as in the run.")]
TimesOption = Annotated[int, typer.Option(min=1, help="CASE: compiles that measure how often it goes wrong.")]
SeedOption = Annotated[int, typer.Option(help="CASE: seed of torch's random generators.")]
GoodTorchOption = Annotated[
    str | None,
    typer.Option(metavar="V", help="CASE: compare with the compiler of torch V, which is right."),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Ignore cached builds and judgements.")]
