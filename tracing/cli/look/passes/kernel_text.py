"""The passes of one kernel, printed for a person: a table, one pass, or the history of operations."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tracing import store
from tracing.analyze.passes import pass_table as analysis
from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.copied_lines import copied_functions
from tracing.analyze.passes.llvm import instructions, readable
from tracing.cli.app import err, out
from tracing.cli.look.passes.kernel_view import became_of, ir_of, selected, wanted_operations
from tracing.cli.look.passes.llvm import derived_llvm
from tracing.cli.look.passes.question import PassQuestion
from tracing.model import Compilation, LlvmPass, LlvmPasses, PassRecord
from tracing.report.passes import llvm as llvm_report
from tracing.report.passes import passes as report
from tracing.report.text import Line


def print_kernel(run: store.Run, chosen: Compilation, asked: PassQuestion) -> None:
    """Print the answer about one kernel."""
    if asked.llvm:
        _print_llvm(run, chosen, derived_llvm(run, chosen, asked.seconds), asked)
    else:
        _print_mlir(run, chosen, analysis.passes_of(run, chosen), asked)


def _print_mlir(
    run: store.Run, chosen: Compilation, records: Sequence[PassRecord], asked: PassQuestion
) -> None:
    if asked.which is not None and asked.op is None:
        record = analysis.find_pass(records, asked.which, asked.stage)
        if asked.side is not None:
            _write(ir_of(run, record, asked.side), asked.output)
        else:
            _print_pass(run, record, asked.locations)
        return
    steps = analysis.steps(run, selected(records, asked))
    among = asked.among(steps)
    wanted = wanted_operations(among, asked.op)
    out.print_lines(_heading(run, chosen))
    if wanted is None:
        out.print_lines(report.passes_text(steps, among))
    else:
        out.print_lines(report.history_text(among, wanted, became_of(run, among, wanted)))


def _heading(run: store.Run, chosen: Compilation) -> Iterable[Line]:
    return report.kernel_heading(chosen, compilations(run), copied_functions(run, chosen))


def _print_llvm(run: store.Run, chosen: Compilation, ran: LlvmPasses, asked: PassQuestion) -> None:
    for warning in llvm_report.warning_text(ran):
        err.print(warning)
    if asked.which is not None and asked.op is None:
        one = analysis.find_pass(ran.passes, asked.which, asked.stage)
        if asked.side is not None:
            _write(ir_of(run, one, asked.side), asked.output)
        else:
            _print_llvm_pass(run, chosen, ran, one, asked.locations)
        return
    steps = analysis.steps(run, selected(ran.passes, asked), instructions)
    among = asked.among(steps)
    wanted = wanted_operations(among, asked.op)
    out.print_lines(llvm_report.death_text(ran))
    out.print_lines(_heading(run, chosen))
    out.print_lines(
        llvm_report.llvm_text(ran, steps, among) if wanted is None else report.history_text(among, wanted, {})
    )


def _write(text: str | None, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text or "")
        return
    output.write_text(text or "")


def _print_pass(run: store.Run, record: PassRecord, locations: bool) -> None:
    # the diff of the pass; the input IR of a pass that did not end
    (step,) = analysis.steps(run, [record])
    heading, before = report.pass_heading(step, compilations(run)), run.text(record.before)
    if record.after is None:
        out.print_lines(report.reproducer_text(heading, before))
    else:
        out.print_lines(heading)
        out.print_lines(report.diff_text(before, run.text(record.after), locations))


def _print_llvm_pass(
    run: store.Run, chosen: Compilation, ran: LlvmPasses, one: LlvmPass, locations: bool
) -> None:
    heading = list(llvm_report.llvm_pass_heading(chosen, *analysis.steps(run, [one], instructions)))
    before = run.text(one.before)
    if one.after is None:
        died = bool(ran.failure) and one == ran.passes[-1]
        out.print_lines(llvm_report.unprinted_text(heading, before, died=died))
    else:
        out.print_lines(heading)
        out.print_lines(report.diff_text(before, run.text(one.after), locations, readable))
