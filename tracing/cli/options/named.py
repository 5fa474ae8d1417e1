"""Arguments and options that name a run, a case, a target, a kernel or a pass; shells complete them."""

from __future__ import annotations

from typing import Annotated

import typer

from tracing.cli.options.completion import case_names, kernel_names, pass_names, run_names
from tracing.model.chips import CHIPS


def _known_target(target: str) -> str:
    if target not in CHIPS:
        raise typer.BadParameter(f"'{target}' is not one of {', '.join(map(repr, CHIPS))}")
    return target


RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help='A run by path or name, or "latest"; "latest~1" is the one before.',
        autocompletion=run_names,
    ),
]
CaseArgument = Annotated[
    str, typer.Argument(metavar="CASE", help="A case by name or path.", autocompletion=case_names)
]
OneKernelOption = Annotated[
    str | None,
    typer.Option(
        help="A kernel by name, by the first digits of its hash, or NAME#2.", autocompletion=kernel_names
    ),
]
OnePassOption = Annotated[
    str, typer.Option("--pass", autocompletion=pass_names, help="The pass: its index, its name, or NAME#2.")
]
RecordSeedOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Seed of torch's random generators, for a program also of numpy's and Python's. "
        "Default: 0 for a case; a program seeds them itself.",
    ),
]
TargetOption = Annotated[
    str, typer.Option(callback=_known_target, help="Target that kernels are compiled for without a GPU.")
]
