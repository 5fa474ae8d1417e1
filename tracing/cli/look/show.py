"""`tracing show`: print a recorded run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from shlex import quote

import typer
from rich.text import Text

from tracing import store
from tracing.analyze.graphs.operation_lines import at_operations
from tracing.analyze.memory.evidence import evidence_sentence, memory_evidence
from tracing.analyze.memory.fresh_outputs import fresh_outputs
from tracing.analyze.passes.compilations import BINARIES, label
from tracing.analyze.passes.pass_table import KernelPasses, kernel_passes
from tracing.analyze.runs.call_sites import launch_origin
from tracing.analyze.runs.recorded_steps import not_covered_steps
from tracing.cli.answers import hints
from tracing.cli.app import LOOK, RUNS, Json, Runs, app, err, out
from tracing.cli.look.followed import followed
from tracing.cli.look.passes.failure import unassembled_text, unfinished
from tracing.cli.look.shown_operators import print_operator, print_operators
from tracing.cli.options.derived import open_derived
from tracing.cli.options.named import RunArgument
from tracing.cli.options.opened import open_run
from tracing.cli.options.option_record import with_option_records
from tracing.cli.options.shown_part import ShownPart
from tracing.errors import Problem
from tracing.model import Failure, KernelLaunch, Outcome
from tracing.report.failure import failure_text
from tracing.report.findings import uninitialised_text
from tracing.report.launch import compiled_text, launch_in_full
from tracing.report.passes.passes import unfinished_text
from tracing.report.run import pages, run_text
from tracing.report.run_json import run_json
from tracing.report.text import plural
from tracing.store.cut_files import is_damaged
from tracing.store.recorded_launch import launches_text


@app.command(rich_help_panel=LOOK)
@with_option_records
def show(
    name: RunArgument,
    shown: ShownPart,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Show what a run holds: versions, kernels, and launches with their arguments and digests.

    A run with more than 1000 launches is shown in pages: --page 2, or --all. --json prints all launches.

    Example: tracing show demo-faulty --launch 1

    Exit status: 0; 2 if there is no such run, page, launch, stage or operator, or the run is damaged.
    """
    shown.require_one(as_json=as_json)
    page = None if shown.whole else shown.page
    if shown.launch is not None and not shown.stage and not as_json:
        _print_launch(open_derived(name, runs), shown.launch)
        return
    run = open_run(name, runs)
    if shown.follow:
        _follow(run, shown.whole)
    elif shown.operator is not None:
        print_operator(run, shown.operator, as_json=as_json)
    elif shown.operators:
        print_operators(run, page, as_json=as_json)
    elif shown.launch is not None and shown.stage:
        _print_stage(run, shown.launch, shown.stage)
    elif as_json:
        print(json.dumps(run_json(run, _launches(run, shown.launch)), indent=2))
    else:
        print_run(run, page)
    if not shown.follow and is_damaged(run.path):  # a finding says so
        raise typer.Exit(2)


def _follow(run: store.Run, whole: bool) -> None:
    with suppress(KeyboardInterrupt):
        for line in followed(run, whole):
            out.print(line)


def print_run(opened: store.Run, page: int | None = 1) -> None:
    if page is not None and page > 1 and page > (count := pages(opened)):
        raise Problem(
            f"{opened.path} has no page {page}: it has {plural(count, 'page')}",
            f"the last one: `tracing show {quote(str(opened.path))} --page {count}`",
        )
    for line in run_text(opened, page):
        out.print(line)
    for command in hints.of_outcome(opened):
        out.print(f"    next      {command}")
    for failure in opened.records(Failure):
        for excerpt in failure_text(failure, opened.text):
            out.print(excerpt)
    if any(
        outcome.status in ("passed", "differs", "not decided", "out of bounds")
        for outcome in opened.records(Outcome)
    ):
        return
    try:
        derived = open_derived(str(opened.path), opened.path.parent)
    except Problem as problem:  # another Triton is installed; the rest of the run is shown
        err.print(f"whether a pass did not end is not known: {problem.problem}")
        return
    for record, message in unfinished(derived):
        for part in unfinished_text(record, message):
            out.print(part)
    for line in unassembled_text(derived):
        out.print(line)


def _launches(run: store.Run, index: int | None) -> list[tuple[int, KernelLaunch]]:
    # with their ranks; several ranks may have a launch of one index
    indices, chosen = set[int](), []
    for process in run.processes():
        joined = map(run.joiner(process).launch, run.rows(process))
        for one in map(at_operations(run, process), joined):
            indices.add(one.index)
            if index in (None, one.index):
                chosen.append((store.rank_of(process), one))
    if index is not None and not chosen:
        why = "".join(f"; not recorded: {one.what}" for one in not_covered_steps(run))
        listing = f"list them with `tracing show {run.path}`"
        raise Problem(f"{run.path} has no launch {index}: {launches_text(indices)}{why}", listing)
    return chosen


def _print_launch(opened: store.Run, index: int) -> None:
    launches = _launches(opened, index)
    known = kernel_passes(opened)
    for rank, one in launches:
        fresh = fresh_outputs(opened, rank, one)
        for line in launch_in_full(one, launch_origin(opened, rank, one), fresh):
            out.print(line)
        for evidence in memory_evidence(opened, rank, one.index):
            out.print(f"    memory      {evidence_sentence(evidence)}")
        for read in uninitialised_text(opened, one.index):
            out.print(Text("    ") + read)
        _print_compilation(opened, known, one, rank)


def _print_stage(opened: store.Run, index: int, stage: str) -> None:
    _, one = _launches(opened, index)[0]
    kernel = one.kernel
    known = {**({"python": kernel.source} if kernel.source else {}), **kernel.stages}
    texts = [name for name in known if name not in BINARIES.values()]
    if stage not in texts:
        raise Problem(f"launch {index} has no text of stage {stage}", f"stages: {', '.join(texts) or 'none'}")
    print(opened.text(known[stage]))


def _print_compilation(
    run: store.Run, known: Sequence[KernelPasses], launch: KernelLaunch, rank: int
) -> None:
    compiled = next((one for one in known if one.compilation.hash == launch.kernel.hash), None)
    if compiled is None:
        out.print("    no compiler passes were recorded for this kernel")
        return
    kept = hints.is_kept(run, launch, rank)
    name = label([one.compilation for one in known], compiled.compilation)
    out.print(compiled_text(name, compiled))
    if source := hints.source_of(run, launch):
        out.print(f"    next        {source}")
    for command in hints.of_kernel(run, name, compiled.compilation, launch.index, kept=kept):
        out.print(f"    next        {command}")
