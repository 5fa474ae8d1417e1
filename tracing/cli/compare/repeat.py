"""`tracing repeat`: is a case deterministic, and if not, which kernel is to blame?"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tracing.analyze.runs.determinism import Repeat, rate
from tracing.cli.answers.divergence_answer import as_json as divergence_as_json
from tracing.cli.app import COMPARE, RUNS, Json, Runs, app, out, silent
from tracing.cli.compare.repeat_series import RepeatSeries, RepeatSettings
from tracing.cli.options.named import RecordSeedOption, TargetOption
from tracing.cli.options.program_words import ProgramArgument, ProgramCommand, program_of
from tracing.environment import installed_tools
from tracing.model.chips import DEFAULT_TARGET
from tracing.report.compare import repeat as report

_FAILURES = 2  # after this many failures without a finished run the case is broken


@app.command(rich_help_panel=COMPARE, cls=ProgramCommand)
def repeat(
    words: ProgramArgument,
    times: Annotated[int, typer.Option(min=2, help="Number of runs.")] = 10,
    perturb: Annotated[
        bool,
        typer.Option(
            "--perturb",
            help="Change what no program may rely on: in each run when launches start, on a GPU the order "
            "of streams, and without a GPU that of programs; in turn uninitialised memory, the winners of "
            "autotuning, and the seed of string hashes (record at least 4 runs).",
        ),
    ] = False,
    fresh_caches: Annotated[
        bool, typer.Option("--fresh-caches", help="Compile every kernel in each run.")
    ] = False,
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic", help="If runs differ, repeat under Inductor's deterministic settings."
        ),
    ] = False,
    seed: RecordSeedOption = None,
    target: TargetOption = DEFAULT_TARGET,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many divergences of a run.")] = 10,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Test whether a case or program is deterministic, and if not, find the kernel to blame.

    Records it several times, each time in a separate process, and compares each run with the first.

    Example: tracing repeat silu --times 4 --perturb

    Exit status: 0 if all runs are equal, 1 if one differs or fails, if they differ from eager, or if a launch
    accesses memory wrongly (the lines `memory:`), 2 if no run could be compared.
    """
    program = program_of(words)
    case = words[0] if program is None else shlex.join(words)
    words = [] if program is None else words
    settings = RepeatSettings(times, seed, target, fresh_caches, deterministic, perturb, limit)
    if not as_json:
        raise typer.Exit(_repeated(case, words, runs, settings)[0])
    with silent():
        status, series = _repeated(case, words, runs, settings)
    print(json.dumps(_as_json(case, status, series), indent=2))
    raise typer.Exit(status)


def _repeated(
    case: str, program: Sequence[str], runs: Path, settings: RepeatSettings
) -> tuple[int, list[RepeatSeries]]:
    # the exit status; the second series has the deterministic settings
    installed_tools.require_compiler()
    every = [series := RepeatSeries(settings)]
    series.record(case, program, runs, deterministic=False)
    if settings.deterministic and not series.differing:
        out.print("the deterministic settings were not tried: no run differed")
    elif settings.deterministic:
        out.print("\nunder Inductor's deterministic settings:")
        every.append(deterministic := RepeatSeries(settings))
        deterministic.record(case, program, runs, deterministic=True)
        least = rate(series.repeats).interval()[0]
        out.print(report.deterministic_text(deterministic.differing, least, len(deterministic.repeats)))
    return series.status, every


def _as_json(case: str, status: int, every: Sequence[RepeatSeries]) -> dict[str, Any]:
    series, deterministic = every[0], every[1] if len(every) > 1 else None
    first = series.first
    return {
        "case": case,
        "status": status,
        "first": str(first[1].path) if first else None,
        "runs": [_repeat_json(series, one) for one in series.repeats],
        "rate": report.rate_json(series.repeats),
        "memory_findings": [line.plain for line in series.memory_findings],
        "next": series.next,
        "unlike_eager": {str(index): detail for index, detail in series.unlike_eager.items()},
        "deterministic": report.rate_json(deterministic.repeats) if deterministic else None,
    }


def _repeat_json(series: RepeatSeries, one: Repeat) -> dict[str, Any]:
    run = series.runs[one.index]
    pair = (series.first[1], run) if series.first else None
    return {
        "index": one.index,
        "run": str(run.path),
        "differs": one.differs,
        "failure": one.failure or None,
        "pairs": one.pairs,
        "divergences": [divergence_as_json(divergence, pair) for divergence in one.found] if pair else [],
        "results": list(one.results),
        "perturbed": {each.what: each.how for each in one.perturbed if each.how},
    }
