"""`tracing lit`: write a recorded pass as a regression test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracing import store
from tracing.analyze.passes.lit import LIMIT, LitTest, lit_test, survival_test
from tracing.analyze.passes.pass_table import find_pass, passes_of
from tracing.cli.answers.recording_hints import record_command
from tracing.cli.app import NARROW, RUNS, Json, Runs, app, err
from tracing.cli.narrow.other_compiler import unlike_next, unlike_result
from tracing.cli.options.chosen_kernel import chosen_kernel
from tracing.cli.options.derived import open_derived
from tracing.cli.options.named import OneKernelOption, OnePassOption, RunArgument
from tracing.cli.options.outputs import OutputFileOption
from tracing.cli.options.trust import Trust
from tracing.errors import Problem

SECONDS = 60.0  # time limit of the pass

if TYPE_CHECKING:
    from tracing.compiler.opt.pipeline_text import PassText
    from tracing.model import PassRecord


@app.command(rich_help_panel=NARROW)
def lit(
    name: RunArgument,
    which: OnePassOption,
    kernel: OneKernelOption = None,
    grep: Annotated[
        str | None, typer.Option(help="Check only lines that match this regular expression.")
    ] = None,
    output: OutputFileOption = None,
    ir: Annotated[
        Path | None, typer.Option(help="The IR before the pass, as written by `tracing reduce`.")
    ] = None,
    trust: Trust = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Write a lit test of one recorded pass, for triton-opt and `tracing opt` alike.

    The input is the IR before the pass; the test checks the effect of the pass. The test is executed before
    it is written: it must pass, and must fail without the pass. For a pass that dies, the test fails until
    the pass is fixed. Without --output the test is printed.

    Example: tracing lit demo-sound --kernel triton_poi_fused_mul_sigmoid_1#1 --pass tritongpu-coalesce

    Exit status: 0 if the test was written, 2 if no test fails without the pass.
    """
    run = open_derived(name, runs, kernel, which, trust=trust)
    run.require_trust(f"the pass {which} on its IR")
    record = find_pass(passes_of(run, chosen_kernel(run, kernel)), which)
    before, after = _sides(run, record, ir)
    if after is None:
        test, result = survival(run, record, before), "the test fails, until the pass is mended"
    else:
        test, result = (
            verified(run, record, before, after, grep),
            "the test passes, and fails without the pass",
        )
    if output is not None:
        output.write_text(test.text)
    if as_json:
        answer = {
            "run": str(run.path), "status": 0, "pass": record.index, "name": record.name,
            "dies": after is None, "file": str(output) if output else None, "test": test.text,
        }  # fmt: skip
        print(json.dumps(answer, indent=2))
    elif output is None:
        print(test.text, end="")
    err.print(result if output is None else f"{output}: {result}")


def _sides(run: store.Run, record: PassRecord, ir: Path | None) -> tuple[str, str | None]:
    # the IR before the pass and after it; None: it dies
    if ir is None:
        after = run.text(record.after) if record.after is not None else None
        return run.text(record.before), after
    from tracing.compiler.one_pass import run_passes
    from tracing.compiler.opt.pipeline_text import passes_in

    made = run_passes(ir.read_text(), passes_in(record.pipeline), seconds=SECONDS)
    if made.before is None:
        raise Problem(
            f"{ir} is no IR that this Triton reads",
            "`tracing reduce … -o FILE` writes IR that this Triton reads",
        )
    return made.before, made.after


def survival(run: store.Run, record: PassRecord, before: str) -> LitTest:
    """A test that a pass does not die; verified to fail with the pass and to pass without it."""
    from tracing.compiler.one_pass import run_passes
    from tracing.compiler.opt.pipeline_text import passes_in
    from tracing.compiler.opt.run import flags
    from tracing.compiler.tools import filecheck

    passes = passes_in(record.pipeline)
    ending = run_passes(before, passes, seconds=SECONDS).ending
    if ending is None:
        raise Problem(
            f"{record.name} did not end when it was recorded, and ends with the installed compiler",
            f"record with the installed compiler: `{record_command(run)}`",
        )
    test = survival_test(before, flags(passes), f"{_title(run, record)}\nThe pass dies: {ending.message}")
    untouched = run_passes(before, (), seconds=SECONDS).after or ""
    if wrong := filecheck(test.text, untouched, test.filecheck):
        raise Problem(f"no test of {record.name} could be made: {wrong}")
    return test


def _title(run: store.Run, record: PassRecord) -> str:
    return (
        f"{record.name} of {record.compilation.kernel_name} for {record.compilation.target}, "
        f"pass {record.index}, Triton {run.info.environment.triton}"
    )


def verified(run: store.Run, record: PassRecord, before: str, after: str, grep: str | None = None) -> LitTest:
    """A test of one pass; verified to pass with the pass and to fail without it.

    The most readable test is tried first; if it also passes without the pass, every changed line is checked.
    Raises Problem if neither can, or if the pass changed nothing.
    """
    from tracing.compiler.opt.pipeline_text import passes_in
    from tracing.compiler.opt.run import flags

    passes = passes_in(record.pipeline)
    complaint = ""
    for limit in (LIMIT, None):
        test = _made(record, (before, after), flags(passes), _title(run, record), limit, grep)
        complaint = _complaint(test, passes)
        if not complaint:
            return test
    if before == run.text(record.before) and (unlike := unlike_result(run, [record])) is not None:
        remedies = [f"`{command}`" for command in unlike_next(run, unlike)]
        raise Problem(
            f"no test of {record.name} could be made: {unlike.sentence}",
            f"the recorded effect: {remedies[0]}\n  record with the installed compiler: {remedies[1]}",
        )
    other = "choose other lines, or leave `--grep` out" if grep else "choose lines with `--grep`"
    raise Problem(f"no test of {record.name} could be made: {complaint}", other)


def _made(
    record: PassRecord, sides: tuple[str, str], flag: str, title: str, limit: int | None, grep: str | None
) -> LitTest:
    try:
        return lit_test(*sides, flag, title, limit=limit, only=grep)
    except Problem as problem:
        raise Problem(f"pass {record.index}, {record.name}: {problem.problem}", problem.remedy) from None


def _complaint(test: LitTest, passes: tuple[PassText, ...]) -> str:
    from tracing.compiler.opt.run import OptSettings, optimise
    from tracing.compiler.tools import filecheck

    done = optimise(test.text, "test.mlir", OptSettings(passes, split_input_file=True))
    if not done.passed:
        return f"the pass fails on its recorded input: {done.stderr.strip()}"
    wrong = filecheck(test.text, done.text, test.filecheck)
    if wrong:
        return f"the test does not reproduce the recorded IR: {wrong}"
    left_out = optimise(test.text, "test.mlir", OptSettings(split_input_file=True))
    return (
        ""
        if filecheck(test.text, left_out.text, test.filecheck)
        else ("the test passes without the pass, too")
    )
