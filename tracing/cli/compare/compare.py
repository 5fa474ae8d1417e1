"""`tracing compare`: the first difference of two runs of a case, and the cause that the evidence accuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.text import Text

from tracing.analyze.align.alignment import WINDOW
from tracing.analyze.compare.accused import Accused, accused_of
from tracing.analyze.compare.divergence_kinds import LaunchDiffers
from tracing.analyze.compare.target_code import target_codes
from tracing.analyze.compare.verdict import ComparisonVerdict, ResultCause
from tracing.analyze.runs.program_differences import other_variables
from tracing.cli.answers import hints
from tracing.cli.answers.divergence_answer import as_json as divergence_as_json
from tracing.cli.answers.divergence_answer import print_divergence
from tracing.cli.answers.divergence_hints import of_operator
from tracing.cli.app import COMPARE, RUNS, Json, Runs, app, out
from tracing.cli.options.run_pair import Anyway, First, RunPair, Second, open_pair
from tracing.report.compare import comparison as report
from tracing.report.compare.cause import cause_text
from tracing.report.compare.comparison_json import result_json, unwritten_json, without_launch_json
from tracing.report.findings import cut_text, uncovered_text
from tracing.report.text import plural
from tracing.store.cut_files import is_damaged

LimitOption = Annotated[
    int, typer.Option(min=1, help="Show at most this many divergences, and parts that were not compared.")
]
WindowOption = Annotated[int, typer.Option(min=8, help="Launches to search ahead for the end of a gap.")]


@app.command(rich_help_panel=COMPARE)
def compare(
    a: First,
    b: Second,
    anyway: Anyway = False,
    limit: LimitOption = 10,
    window: WindowOption = WINDOW,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Find the first launch at which two runs differ, and what caused the difference.

    Compares the launches in order: kernel, configuration, inputs, outputs. Shows the first divergence with
    its evidence, then every later divergence that does not follow from it.

    Example: tracing compare demo-sound demo-faulty

    Exit status: 0 if all is equal, 1 if something differs, 2 if the runs could be compared in part only.
    """
    pair = open_pair(a, b, runs, anyway=anyway, quiet=as_json)
    verdict = ComparisonVerdict.of(*pair, window)
    raise typer.Exit(_print_json(pair, verdict) if as_json else _print_compared(pair, verdict, limit))


def _status(runs: RunPair, verdict: ComparisonVerdict) -> int:
    # after the search has ended
    return verdict.status or (2 if any(is_damaged(run.path) for run in runs) else 0)


def _print_compared(runs: RunPair, verdict: ComparisonVerdict, limit: int) -> int:
    if runs[0].path.resolve() == runs[1].path.resolve():
        out.print(Text(f"both are the same run, {runs[0].path}: `tracing list` lists others"))
    for one in verdict.start:
        out.print(Text.assemble(("✗ start", "bold red"), f": {one.title} differs: {one.a} | {one.b}"))
    variables = other_variables(*runs)
    for name, (a, b) in variables.items():
        out.print(Text(f"environment variable, which the program reads: {name} is {a} | {b}"))
    for line in report.target_code_text(target_codes(*runs)):
        out.print(line)
    typed: list[str] = []  # the commands below the first divergence
    launches = False  # True: a launch differs, so kernels can be swapped
    for count, divergence in enumerate(verdict, 1):
        launches |= isinstance(divergence, LaunchDiffers)
        if count <= limit:
            typed += print_divergence(divergence, runs, ("a", "b"), first=count == 1)
    for one in (*verdict.results, *verdict.outcomes):
        out.print(Text.assemble(("✗", "red"), f" {one.title} differs: {one.a} | {one.b}"))
    for dependent in verdict.dependents:
        out.print(Text.assemble(("✗", "red"), f" {dependent}"))
    if verdict.found > limit:
        more = plural(verdict.found - limit, "divergence")
        out.print(f"{more} more: `--limit {verdict.found}` shows them")
    for line in _conclusion(runs, verdict, typed if launches else None, limit):
        out.print(line)
    return _status(runs, verdict)


def _conclusion(
    runs: RunPair, verdict: ComparisonVerdict, typed: list[str] | None, limit: int
) -> Iterator[Text]:
    # typed -- the commands that were printed; None: no launch differs, so no swap can help
    if verdict.why is not None and not (verdict.start or verdict.outcomes):
        yield from report.why_text(verdict.why, _deciding(verdict.why, runs))
        for command in of_operator(verdict.why.cause, runs[1], verdict.why.result.rank):
            yield Text(f"    next      {command}")
    yield from report.summary_text(verdict.comparison, hints.of_unwritten(runs[1]), limit)
    if not (verdict.found or verdict.start or verdict.outcomes or verdict.dependents):
        yield from report.equality_text(verdict.comparison, verdict.equal_results, verdict.results)
        yield from uncovered_text(runs)
    elif typed is not None and verdict.results and (swap := hints.of_results(*runs)) not in [None, *typed]:
        yield Text(f"which kernels make the results differ: `{swap}`")
    if verdict.start and (same_seed := hints.of_seeds(*runs)):
        yield Text("what differs at the start follows from the seeds; record both with one:")
        yield Text(f"    next      {same_seed}")
    yield from cut_text(runs)


def _deciding(why: ResultCause, runs: RunPair) -> str | None:
    if why.cause is not None and accused_of(why.cause, Accused("result", why.result.name)).certain:
        return None
    return hints.of_facts(*runs)


# ---- as JSON


def _print_json(runs: RunPair, verdict: ComparisonVerdict) -> int:
    entries = [*_starts(verdict), *(divergence_as_json(divergence, runs) for divergence in verdict)]
    if not entries:
        entries = list(_without_launch(runs, verdict))
    notes, status = verdict.comparison.notes, _status(runs, verdict)
    answer = {
        "a": str(runs[0].path), "b": str(runs[1].path), "status": status, "pairs": notes.pairs,
        "consequences": notes.consequences,
        "repeats": sum(verdict.comparison.repeated.values()) - notes.reported,
        "divergences": entries,
        "results": [result_json(one) for one in verdict.results],
        "start": [result_json(one) for one in verdict.start],
        "outcomes": [result_json(one) for one in verdict.outcomes],
        "variables": {name: list(values) for name, values in other_variables(*runs).items()},
        "swapped": notes.swapped, "uninitialised": notes.uninitialised, "unwritten": notes.unwritten,
        "target_code": [
            {"kernel": one.kernel, "stage": one.stage, "lost": one.lost or None}
            for one in target_codes(*runs)
        ],
        "unwritten_memory": [unwritten_json(one) for one in notes.unwritten_memory],
        "dependents": list(verdict.dependents),
        "not_comparable": [f"{argument} of {kernel}" for kernel, argument in sorted(notes.addresses)],
        "selected": notes.selected,
        "not_compared": [*notes.notes, *notes.left_out, *(line.plain for line in cut_text(runs))],
    }  # fmt: skip
    print(json.dumps(answer, indent=2))
    return status


def _starts(verdict: ComparisonVerdict) -> Iterator[dict[str, Any]]:
    # tensors that differ before the first launch: differences in launches follow from them
    for one in verdict.start[:1]:
        if one.tensor:
            yield without_launch_json("start", Accused("start", one.name), one.rank)


def _without_launch(runs: RunPair, verdict: ComparisonVerdict) -> Iterator[dict[str, Any]]:
    why = verdict.why
    if verdict.outcomes:
        one = verdict.outcomes[0]
        yield without_launch_json("outcome", Accused("outcome", one.name), one.rank)
    elif why is not None:
        result = Accused("result", why.result.name)
        who = accused_of(why.cause, result) if why.cause else result
        sentences = list(cause_text(why.cause, ("a", "b"))) if why.cause else []
        commands = of_operator(why.cause, runs[1], why.result.rank)
        yield without_launch_json("result", who, why.result.rank, sentences, _deciding(why, runs), commands)
    elif verdict.start:
        one = verdict.start[0]
        yield without_launch_json("start", Accused("start", one.name), one.rank)
