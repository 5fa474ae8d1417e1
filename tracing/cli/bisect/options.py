"""The arguments and options of `tracing bisect`, with their help."""

from __future__ import annotations

from typing import Annotated

import typer

Name = Annotated[
    str, typer.Argument(metavar="CASE|RUN", help='A case, or a run by path or name, or "latest".')
]
Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- COMMAND]", help="Judges a build, as for `git bisect run`."),
]
Kernel = Annotated[
    str | None, typer.Option(help="A kernel by name, by the first digits of its hash, or NAME#2.")
]
Launch = Annotated[int | None, typer.Option(help="Without COMMAND: the launch to replay.")]
Atol = Annotated[float | None, typer.Option(help="Without COMMAND: absolute tolerance.")]
Rtol = Annotated[float | None, typer.Option(help="Without COMMAND: relative tolerance.")]
Seconds = Annotated[float, typer.Option(help="Time limit of one compile, call of COMMAND, or replay.")]
Repeat = Annotated[
    int, typer.Option("--repeat-judge", min=1, help="Calls of a flaky COMMAND for each build.")
]
Crash = Annotated[bool, typer.Option("--crash", help="Bad: a compile that dies or hangs as in the run.")]
Times = Annotated[int, typer.Option(min=1, help="CASE: compiles that measure how often it goes wrong.")]
Target = Annotated[str, typer.Option(help="CASE: target of kernels without a GPU.")]
Seed = Annotated[int, typer.Option(help="CASE: seed of torch's random generators.")]
GoodTorch = Annotated[
    str | None,
    typer.Option(metavar="V", help="CASE: compare with the compiler of torch V, which is right."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Ignore cached builds and judgements.")]
