"""The arguments and options of `tracing bisect`, with their help."""

from __future__ import annotations

from typing import Annotated

import typer

Name = Annotated[
    str, typer.Argument(metavar="CASE|RUN", help='A case, or a run by path or name, or "latest".')
]
Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- COMMAND]", help="Judges a build, as that of `git bisect run` does."),
]
Kernel = Annotated[
    str | None, typer.Option(help="A kernel by name, by the first digits of its hash, or NAME#2.")
]
Launch = Annotated[int | None, typer.Option(help="Without COMMAND: the launch to replay, not the first.")]
Atol = Annotated[float | None, typer.Option(help="Without COMMAND: absolute tolerance.")]
Rtol = Annotated[float | None, typer.Option(help="Without COMMAND: relative tolerance.")]
Seconds = Annotated[
    float, typer.Option(help="What one compile, one call of COMMAND, or one replay may take.")
]
Repeat = Annotated[
    int, typer.Option("--repeat-judge", min=1, help="Ask so often of each build: COMMAND is flaky.")
]
Crash = Annotated[
    bool, typer.Option("--crash", help="Bad is a compile that dies, or hangs, as that of the run does.")
]
Times = Annotated[int, typer.Option(min=1, help="CASE: compile it so often to see how often it goes wrong.")]
Target = Annotated[str, typer.Option(help="CASE: what kernels are compiled for without a GPU.")]
Seed = Annotated[int, typer.Option(help="CASE: seed of torch's random generators.")]
GoodTorch = Annotated[
    str | None,
    typer.Option(metavar="V", help="CASE: find where the compiler of torch V, which is right, differs."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Forget what was built and judged before.")]
