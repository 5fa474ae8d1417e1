"""The arguments and options of `tracing passes`, with their help."""

from __future__ import annotations

from typing import Annotated

import typer

from tracing.cli.options.completion import kernel_names, pass_names, run_names

SecondRunArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN]", help="A second run, whose passes are compared.", autocompletion=run_names
    ),
]
KernelsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A kernel by name, by the first digits of its hash, or NAME#2; with two runs, once for each.",
        autocompletion=kernel_names,
    ),
]
GraphOption = Annotated[
    int | None,
    typer.Option(
        "--graph", help="Passes of torch.compile over this graph, as `judge` numbers it, of `--graph-passes`."
    ),
]
PassOption = Annotated[
    str | None,
    typer.Option("--pass", autocompletion=pass_names, help="A pass by index, name, or NAME#2: its diff."),
]
StageOption = Annotated[
    str | None, typer.Option(help="Passes of this stage: ttir, ttgir or llir; of LLVM llir, ptx or amdgcn.")
]
LlvmOption = Annotated[bool, typer.Option("--llvm", help="Show LLVM's passes of one kernel instead.")]
ChangedOption = Annotated[bool, typer.Option("--changed", help="Show only passes that changed the IR.")]
OpOption = Annotated[
    str | None,
    typer.Option(metavar="GLOB", help="Show only how these operations change: `tt.dot`, `arith.*`."),
]
LocationsOption = Annotated[bool, typer.Option("--locations", help="Keep locations in a diff.")]
BeforeOption = Annotated[bool, typer.Option("--before", help="With --pass: print the IR before it.")]
AfterOption = Annotated[bool, typer.Option("--after", help="With --pass: print the IR after it.")]
DeriveSecondsOption = Annotated[float, typer.Option(help="With --llvm: time limit of deriving the passes.")]
