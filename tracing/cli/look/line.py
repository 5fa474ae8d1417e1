"""`tracing line`: a Python line of a kernel in every stage of its compilation."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated

import typer

from tracing import store
from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.copied_lines import copied_functions
from tracing.analyze.passes.line_changes import compilation_of_line, follow_line, is_of_model
from tracing.analyze.passes.source_map import StageLines, Thread, stage_lines
from tracing.cli.app import LOOK, RUNS, Json, Runs, app, out
from tracing.cli.options.derived import open_derived
from tracing.cli.options.named import OneKernelOption, RunArgument
from tracing.environment import installed_tools
from tracing.errors import Problem
from tracing.model import Compilation
from tracing.report.passes import passes as report
from tracing.report.passes.passes_json import kernel_json, lines_json


class LineStage(str, Enum):
    """The stages that a line can be followed to."""

    ttir = "ttir"
    ttgir = "ttgir"
    llir = "llir"
    ptx = "ptx"
    amdgcn = "amdgcn"
    sass = "sass"


@app.command(rich_help_panel=LOOK)
def line(
    name: RunArgument,
    position: Annotated[
        str, typer.Argument(metavar="FILE:LINE", help="The line; the end of the file's path is enough.")
    ],
    kernel: OneKernelOption = None,
    stage: Annotated[LineStage | None, typer.Option(help="Only this stage.")] = None,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Show what a Python line of a kernel became in every stage, down to the instructions of the device.

    Follows the line through each path of calls that leads to it. Of a kernel that torch.compile copied into
    a file of its own, name the line of your file; of a model, a line shows the whole kernel that fuses it.

    The table counts, for each stage, the operations that come from this line (of a model: from the lines of
    the kernel that computes it), those that come from any line of Python, and all.

    Example: tracing line demo-sound gated_mlp.py:18 --stage ttgir

    Exit status: 0; 2 if there is no such kernel, stage or line.
    """
    run = open_derived(name, runs, kernel)
    chosen = compilation_of_line(run, kernel, position)
    stages, threads = _followed(run, chosen, position, stage)
    of_model = is_of_model(run, chosen, position)
    if as_json:
        known = {**kernel_json(run, chosen), "of_model": of_model, **lines_json(stages, threads)}
        print(json.dumps(known, indent=2))
        return
    for text in (
        *report.kernel_heading(chosen, compilations(run), copied_functions(run, chosen)),
        *report.stages_text(stages, threads, of_model=of_model),
        *report.threads_text(threads),
    ):
        out.print(text)


def _followed(
    run: store.Run, chosen: Compilation, position: str, stage: LineStage | None
) -> tuple[list[StageLines], list[Thread]]:
    every = stage_lines(run, chosen, installed_tools.nvdisasm())
    stages = [one for one in every if stage in (None, one.stage)]
    if stage is not None and not stages:
        known = ", ".join(one.stage for one in every)
        raise Problem(
            f"this kernel has no stage {stage.value} that a line can be followed to", f"stages: {known}"
        )
    return stages, follow_line(run, chosen, stages, position)
