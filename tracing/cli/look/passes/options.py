"""The arguments and options of `tracing passes`, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FirstRunArgument = Annotated[str, typer.Argument(metavar="RUN", help='A run by path or name, or "latest".')]
SecondRunArgument = Annotated[
    str | None, typer.Argument(metavar="[RUN]", help="A second run, whose passes are compared.")
]
KernelsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A kernel by name, by the first digits of its hash, or NAME#2; with two runs, once for each."
    ),
]
PassOption = Annotated[str | None, typer.Option("--pass", help="A pass by index, name, or NAME#2: its diff.")]
StageOption = Annotated[
    str | None, typer.Option(help="Passes of this stage: ttir, ttgir or llir; of LLVM llir, ptx or amdgcn.")
]
LlvmOption = Annotated[bool, typer.Option("--llvm", help="Show LLVM's passes of one kernel instead.")]
ChangedOption = Annotated[bool, typer.Option("--changed", help="Show only passes that changed the IR.")]
GrepOption = Annotated[
    str | None,
    typer.Option(metavar="REGEX", help="Show only passes that change the number of these operations."),
]
OpOption = Annotated[str | None, typer.Option(help="Show one operation's history: `--op tt.dot`.")]
SourceLineOption = Annotated[
    str | None, typer.Option(metavar="FILE:LINE", help="Follow a Python line through every stage, to SASS.")
]
LocationsOption = Annotated[bool, typer.Option("--locations", help="Keep locations in a diff.")]
BeforeOption = Annotated[bool, typer.Option("--before", help="With --pass: print the IR before it.")]
AfterOption = Annotated[bool, typer.Option("--after", help="With --pass: print the IR after it.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="File for --before or --after.")
]
DeriveSecondsOption = Annotated[float, typer.Option(help="With --llvm: time limit of deriving the passes.")]
