"""The arguments and options of `tracing passes`, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FirstRun = Annotated[str, typer.Argument(metavar="RUN", help='A run by path or name, or "latest".')]
SecondRun = Annotated[
    str | None, typer.Argument(metavar="[RUN]", help="A second run, whose passes are compared.")
]
Kernels = Annotated[
    list[str] | None,
    typer.Option(
        help="A kernel by name, by the first digits of its hash, or NAME#2; of two runs one of each."
    ),
]
Pass = Annotated[str | None, typer.Option("--pass", help="A pass by index, by name, or NAME#2: its diff.")]
Stage = Annotated[
    str | None, typer.Option(help="Passes of this stage: ttir, ttgir or llir; of LLVM llir, ptx or amdgcn.")
]
Llvm = Annotated[bool, typer.Option("--llvm", help="Show LLVM's passes instead of MLIR's, for one kernel.")]
Changed = Annotated[bool, typer.Option("--changed", help="Show only passes that changed the IR.")]
Grep = Annotated[
    str | None,
    typer.Option(metavar="REGEX", help="Show only passes that change the number of these operations."),
]
Op = Annotated[str | None, typer.Option(help="Show one operation's history: `--op tt.dot`.")]
SourceLine = Annotated[
    str | None, typer.Option(metavar="FILE:LINE", help="Follow a Python line through every stage, to SASS.")
]
Locations = Annotated[bool, typer.Option("--locations", help="Keep locations in a diff.")]
Before = Annotated[bool, typer.Option("--before", help="With --pass: print the IR before it.")]
After = Annotated[bool, typer.Option("--after", help="With --pass: print the IR after it.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="File for --before or --after.")
]
Seconds = Annotated[float, typer.Option(help="With --llvm: time limit of deriving the passes.")]
