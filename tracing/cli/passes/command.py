"""`tracing passes`: the compiler passes of a run, and what each did to a kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from tracing import environment, store
from tracing.analyze.passes import pass_table as analysis
from tracing.analyze.passes.llvm import instructions
from tracing.analyze.passes.pass_table import P
from tracing.analyze.passes.replacements import replacements
from tracing.analyze.passes.source_map import follow, stage_lines
from tracing.cli import hints
from tracing.cli.app import LOOK, RUNS, Json, Runs, app, err, out
from tracing.cli.passes.derived import open_derived
from tracing.cli.passes.failure import unfinished
from tracing.cli.passes.llvm import derived_llvm
from tracing.cli.passes.one_pass import PassSide, print_ir, print_llvm_pass, print_pass, side_asked_for
from tracing.cli.passes.pass_pairs import Asked, print_pairs, print_pairs_json
from tracing.errors import Problem
from tracing.model import Compilation, LlvmPasses
from tracing.report import llvm as llvm_report
from tracing.report import passes as report
from tracing.report.passes_json import passes_json


@app.command(rich_help_panel=LOOK)
def passes(
    name: Annotated[str, typer.Argument(metavar="RUN", help='A run by path or name, or "latest".')],
    other: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A second run: where the IR of its kernels parts.")
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            help="A kernel by name, by the first digits of its hash, or NAME#2; of two runs one of each."
        ),
    ] = None,
    which: Annotated[
        str | None, typer.Option("--pass", help="A pass by index, by name, or NAME#2: its diff.")
    ] = None,
    stage: Annotated[
        str | None,
        typer.Option(help="Passes of this stage: ttir, ttgir or llir; of LLVM llir, ptx or amdgcn."),
    ] = None,
    llvm: Annotated[bool, typer.Option("--llvm", help="One kernel's passes of LLVM, not MLIR's.")] = False,
    changed: Annotated[bool, typer.Option("--changed", help="Passes that changed the IR.")] = False,
    grep: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Passes that change how often such operations occur.")
    ] = None,
    op: Annotated[str | None, typer.Option(help="One operation's history: `--op tt.dot`.")] = None,
    line: Annotated[
        str | None, typer.Option(metavar="FILE:LINE", help="A Python line through every stage, to SASS.")
    ] = None,
    locations: Annotated[bool, typer.Option("--locations", help="Keep locations in a diff.")] = False,
    before: Annotated[bool, typer.Option("--before", help="With --pass: the IR before it, as text.")] = False,
    after: Annotated[bool, typer.Option("--after", help="With --pass: the IR after it.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where --before or --after goes.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="With --llvm: what deriving its passes may take.")] = 300.0,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Show what each compiler pass did to the kernels of a run, or where the passes of two runs differ.

    Of two runs (two versions of Triton, two targets, other options), shows the passes of both, the first
    after which the IR differs, and the diff there. With --llvm, shows LLVM's passes, code generator
    included: the first such question compiles the kernel once more, and the run keeps the answer.

    A pass that did not end comes first. `before` and `after` count operations. The output of --before and
    --after has its locations; triton-opt and `tracing opt` read it.

    Example: tracing passes latest --kernel softmax --pass tritongpu-coalesce

    Exit status: 0; of two runs 1 if the IR differs; 2 if there is no answer.
    """
    if as_json:
        refused = {
            "--llvm": llvm, "--grep": grep, "--op": op, "--line": line, "--before": before, "--after": after,
            "--locations": locations, "-o": output, "--pass": which,
        }  # fmt: skip
        for option in (option for option, value in refused.items() if value):
            raise Problem(f"{option} prints text, for which there is no JSON", "leave it out, or --json")
        asked = Asked(kernel or (), None, stage, changed)
        if other is None:
            raise typer.Exit(_print_json(name, runs, asked))
        raise typer.Exit(print_pairs_json(name, other, runs, asked))
    if other is not None:
        refused = {
            "--llvm": llvm, "--grep": grep, "--op": op, "--line": line, "--before": before, "--after": after,
            "--locations": locations, "-o": output,
        }  # fmt: skip
        _refuse(refused)
        print_pairs(name, other, runs, Asked(kernel or (), which, stage, changed))
        return
    run = open_derived(name, runs)
    questions = [option for option in (which, grep, op, line) if option is not None]
    if len(questions) > 1:
        raise Problem("--pass, --grep, --op and --line are four questions", "ask one at a time")
    if llvm and line:
        raise Problem("--line follows a line through stages, not through LLVM's passes", "ask without --llvm")
    side = side_asked_for(which, before, after, output)
    if not questions:
        _print_unfinished(run)
    of_one = bool(questions or changed or stage or llvm)
    if not of_one and not kernel and len(analysis.compilations(run)) > 1:
        _print_kernels(run)
        return
    chosen = analysis.compilation(run, _one_of(kernel))
    if line is not None:
        _print_line(run, chosen, line, stage)
        return
    asked_for = _Question(which, stage, changed, grep, op, locations, side, output)
    if llvm:
        _print_llvm(run, chosen, derived_llvm(run, chosen, seconds), asked_for)
    else:
        _print_mlir(run, chosen, asked_for)


def _print_json(name: str, runs: Path, asked: Asked) -> int:
    run = open_derived(name, runs)
    chosen = _one_of(asked.kernels)
    kernels = analysis.compilations(run) if chosen is None else [analysis.compilation(run, chosen)]
    rows = [
        (one, [record for record in analysis.passes_of(run, one) if asked.wants(record)]) for one in kernels
    ]
    print(json.dumps(passes_json(run, rows), indent=2))
    return 0


@dataclass(frozen=True, slots=True)
class _Question:
    # what is asked about the passes of one kernel
    which: str | None
    stage: str | None
    changed: bool
    grep: str | None
    op: str | None
    locations: bool
    side: PassSide | None  # the IR of this side of the pass is asked for, not its diff
    output: Path | None

    def among(self, steps: Sequence[analysis.PassStep[P]]) -> list[analysis.PassStep[P]]:
        return [step for step in steps if step.record.changed or not self.changed]


def _print_mlir(run: store.Run, chosen: Compilation, asked: _Question) -> None:
    records = analysis.passes_of(run, chosen)
    if asked.which is not None:
        record = analysis.find_pass(records, asked.which, asked.stage)
        if asked.side is not None:
            print_ir(run, record, asked.side, asked.output)
        else:
            print_pass(run, record, asked.locations)
        return
    among = asked.among(analysis.steps(run, _of_stage(records, asked.stage)))
    wanted = _wanted(among, asked.grep, asked.op)
    _print(report.kernel_heading(chosen))
    if wanted is None:
        _print(report.passes_text(among))
    else:
        _print(report.history_text(among, wanted, replacements(run, among, wanted)))


def _print_llvm(run: store.Run, chosen: Compilation, ran: LlvmPasses, asked: _Question) -> None:
    for warning in llvm_report.warning_text(ran):
        err.print(warning)
    if asked.which is not None:
        one = analysis.find_pass(ran.passes, asked.which, asked.stage)
        if asked.side is not None:
            print_ir(run, one, asked.side, asked.output)
        else:
            print_llvm_pass(run, chosen, ran, one, asked.locations)
        return
    among = asked.among(analysis.steps(run, _of_stage(ran.passes, asked.stage), instructions))
    wanted = _wanted(among, asked.grep, asked.op)
    _print(llvm_report.death_text(ran))
    _print(report.kernel_heading(chosen))
    _print(llvm_report.llvm_text(ran, among) if wanted is None else report.history_text(among, wanted, {}))


def _print(lines: Iterable[report.Line]) -> None:
    for one in lines:
        out.print(one)


def _refuse(given: Mapping[str, object]) -> None:
    for option in (name for name, value in given.items() if value):
        raise Problem(f"{option} is about one run", "name one, or leave the option out")


def _one_of(kernels: Sequence[str] | None) -> str | None:
    if kernels and len(kernels) > 1:
        raise Problem("one run is asked about one kernel at a time", "two kernels: name the run twice")
    return kernels[0] if kernels else None


def _print_unfinished(run: store.Run) -> None:
    known = analysis.compilations(run)
    for record, said in unfinished(run):
        _print(report.unfinished_text(record, said))
        for command in hints.of_unfinished(run.path, analysis.label(known, record.compilation), record):
            out.print(f"    next      {command}", markup=False)
        out.print()


def _print_kernels(run: store.Run) -> None:
    _print(report.kernels_text(analysis.kernel_passes(run)))
    out.print(f"one kernel's passes: tracing passes {run.path} --kernel KERNEL", markup=False)


def _of_stage(records: Sequence[P], stage: str | None) -> list[P]:
    selected = [one for one in records if stage in (None, one.stage)]
    if not selected and records:
        stages = ", ".join(dict.fromkeys(one.stage for one in records))
        raise Problem(f"this kernel has no pass of stage {stage}", f"stages that were recorded: {stages}")
    return selected


def _wanted(steps: Sequence[analysis.PassStep[P]], grep: str | None, op: str | None) -> set[str] | None:
    # the operations whose history is asked for, None: no such question
    if grep is None and op is None:
        return None
    try:
        pattern = re.compile(re.escape(op) + "$" if op else grep or "")
    except re.error as error:
        raise Problem(
            f"{grep} is no regular expression: {error}", "`--op NAME` takes a name as it is"
        ) from None
    occurring = {name for step in steps for name in (*step.before, *step.after)}
    wanted = {name for name in occurring if (pattern.match if op else pattern.search)(name)}
    if not wanted:
        near = get_close_matches(op or grep or "", sorted(occurring), n=3, cutoff=0.5) or sorted(occurring)
        raise Problem(
            f"no operation of these passes is {op or f'like {grep}'}", f"there are: {', '.join(near)}"
        )
    return wanted


def _print_line(run: store.Run, chosen: Compilation, place: str, stage: str | None) -> None:
    every = stage_lines(run, chosen, environment.nvdisasm())
    stages = [one for one in every if stage in (None, one.stage)]
    if not stages:
        known = ", ".join(one.stage for one in every)
        raise Problem(f"this kernel has no stage {stage} that a line can be followed to", f"stages: {known}")
    threads = follow(stages, place)
    _print(report.kernel_heading(chosen))
    _print(report.stages_text(stages, threads))
    _print(report.threads_text(threads))
