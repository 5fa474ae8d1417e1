"""`tracing passes`: the compiler passes of a run, and their effect on a kernel."""

from __future__ import annotations

import json
from shlex import quote

import typer
from rich.text import Text

from tracing import store
from tracing.analyze.passes import pass_table as analysis
from tracing.analyze.passes.compilations import compilations, label
from tracing.cli.answers import hints
from tracing.cli.app import LOOK, RUNS, Json, Runs, app, out
from tracing.cli.look.passes.failure import unassembled_text, unfinished
from tracing.cli.look.passes.graph_view import print_graph
from tracing.cli.look.passes.kernel_text import print_kernel
from tracing.cli.look.passes.kernel_view import answer_json, kernels_json
from tracing.cli.look.passes.llvm import require_llvm_pass
from tracing.cli.look.passes.options import (
    AfterOption,
    BeforeOption,
    ChangedOption,
    DeriveSecondsOption,
    GraphOption,
    KernelsOption,
    LlvmOption,
    LocationsOption,
    OpOption,
    PassOption,
    SecondRunArgument,
    StageOption,
)
from tracing.cli.look.passes.pass_pairs import print_pairs, print_pairs_json
from tracing.cli.look.passes.question import PassQuestion, side_asked_for
from tracing.cli.options.chosen_kernel import chosen_kernel
from tracing.cli.options.derived import open_derived
from tracing.cli.options.named import RunArgument
from tracing.cli.options.opened import open_run
from tracing.cli.options.outputs import OutputFileOption
from tracing.cli.options.trust import Trust
from tracing.errors import Problem
from tracing.report.passes import passes as report


@app.command(rich_help_panel=LOOK)
def passes(
    name: RunArgument,
    other: SecondRunArgument = None,
    kernel: KernelsOption = None,
    graph: GraphOption = None,
    which: PassOption = None,
    stage: StageOption = None,
    llvm: LlvmOption = False,
    changed: ChangedOption = False,
    op: OpOption = None,
    locations: LocationsOption = False,
    before: BeforeOption = False,
    after: AfterOption = False,
    output: OutputFileOption = None,
    seconds: DeriveSecondsOption = 300.0,
    trust: Trust = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Show the effect of each compiler pass on the kernels of a run, or where the passes of two runs differ.

    With --graph, shows the passes of torch.compile over a graph, from Dynamo's graph to Inductor's.

    Of two runs (two versions of Triton, two targets, other options), shows the passes of both, the first
    after which the IR differs, and the diff there. With --llvm, shows LLVM's passes, code generator
    included: the first such question compiles the kernel once more, and the run keeps the answer.

    A pass that did not end comes first. `before` and `after` count operations: functions and terminators
    count, the module does not. --before and --after print IR with its locations, or write it to --output;
    triton-opt and `tracing opt` read it. Without --output nothing is written. `tracing line` follows a
    Python line.

    Example: tracing passes demo-faulty --kernel triton_poi_fused_mul_sigmoid_1#1 --pass triton-combine

    Exit status: 0; of two runs 1 if the IR differs, or only one of them compiled a kernel; 2 if there is no
    answer.
    """
    side = side_asked_for(which, before, after, output)
    asked = PassQuestion(
        tuple(kernel or ()), which, stage, changed, llvm, op, locations, side, output, seconds
    )
    if graph is not None:
        if other is not None:
            raise Problem("--graph is about one run", "name one, or leave the option out")
        print_graph(open_run(name, runs), graph, asked, as_json=as_json)
    elif other is not None:
        asked.require_about_two_runs()
        pairs = print_pairs_json if as_json else print_pairs
        raise typer.Exit(pairs(name, other, runs, asked))
    else:
        asked.require_about_one_run()
        named = (None, None) if llvm else (which, stage)
        run = open_derived(name, runs, asked.kernel, *named, trust=trust)
        _print_run(run, asked, as_json=as_json)


def _print_run(run: store.Run, asked: PassQuestion, *, as_json: bool) -> None:
    if asked.llvm:
        require_llvm_pass(run, asked)
    if as_json:
        asked.require_no_file()
        print(json.dumps(_as_json(run, asked), indent=2))
    else:
        _print_kernels(run, asked)


def _as_json(run: store.Run, asked: PassQuestion) -> dict[str, object]:
    if asked.of_one_pass_or_operation or asked.llvm:
        return answer_json(run, chosen_kernel(run, asked.kernel), asked)
    return kernels_json(run, asked)


def _print_kernels(run: store.Run, asked: PassQuestion) -> None:
    if not asked.of_one_pass_or_operation:
        _print_unfinished(run)
    if asked.of_every_kernel and len(compilations(run)) > 1:
        out.print_lines(report.kernels_text(analysis.kernel_passes(run)))
        known = compilations(run)
        first = quote(label(known, known[0]))
        out.print(Text(f"one kernel's passes: tracing passes {quote(str(run.path))} --kernel {first}"))
        return
    print_kernel(run, chosen_kernel(run, asked.kernel), asked)
    if asked.of_every_kernel:
        out.print_lines(report.shared_options_text(compilations(run)))


def _print_unfinished(run: store.Run) -> None:
    known = compilations(run)
    for record, message in unfinished(run):
        out.print_lines(report.unfinished_text(record, message))
        for command in hints.of_unfinished(run.path, label(known, record.compilation), record):
            out.print(Text(f"    next      {command}"))
        out.print()
    out.print_lines(unassembled_text(run))
