"""The options of `tracing debug` that say where gdb stops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tracing.cli.options.completion import kernel_names, pass_names


@dataclass(frozen=True)
class StopOptions:
    """A compiler pass, of one kernel and stage; or the pass that changed what a Python line became."""

    which: Annotated[
        str | None,
        typer.Option(
            "--pass", autocompletion=pass_names, help="The pass: its name, in a run also NAME#2 or its index."
        ),
    ] = None
    kernel: Annotated[
        str | None, typer.Option(help="The kernel; a glob, unless of a run.", autocompletion=kernel_names)
    ] = None
    stage: Annotated[str | None, typer.Option(help="The stage: ttir, ttgir or llir.")] = None
    line: Annotated[
        str | None,
        typer.Option(
            metavar="FILE:LINE", help="Of a run: stop in a pass that changed what this Python line became."
        ),
    ] = None
