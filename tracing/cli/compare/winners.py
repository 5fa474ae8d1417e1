"""`tracing winners`: list the autotuners' choices on each rank, or write them to a file that freezes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.text import Text

from tracing import store
from tracing.analyze.runs.winners import Choice, choices
from tracing.cli.app import COMPARE, RUNS, Json, Runs, app, err, out
from tracing.cli.options.named import RunArgument
from tracing.cli.options.opened import open_run
from tracing.cli.options.outputs import OutputFileOption
from tracing.errors import Problem
from tracing.model import Environment, Winner
from tracing.report.run_json import winners_json
from tracing.report.text import plural
from tracing.report.winners import choice_text, ranks_text
from tracing.store.winners import WinnersFile, write_winners


@app.command(rich_help_panel=COMPARE)
def winners(
    name: RunArgument,
    output: OutputFileOption = None,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """List the configurations that autotuners chose, by kernel, tuning key and rank.

    Includes @triton.autotune and Inductor. --output writes the choices as JSON for `tracing run --winners`;
    if ranks chose differently, the file contains those of the lowest rank. Without --output nothing is
    written.

    Example: tracing winners demo-sound --output winners.json

    Exit status: 0; 1 if ranks chose differently; 2 if there is no such run.
    """
    run = open_run(name, runs)
    chosen = choices(run)
    ranks = sorted({rank for choice in chosen for rank in choice.by_rank})
    for choice in chosen if not as_json else ():
        for line in choice_text(choice, ranks):
            out.print(line)
    unlike = [choice for choice in chosen if not choice.agreed]
    if as_json:
        print(json.dumps(winners_json(run, chosen), indent=2))
    else:
        out.print(_summary(len(chosen), len(unlike), ranks))
    if output is not None:
        _write(output, run, chosen)
        if not as_json:
            out.print(f"written: {output}")
    raise typer.Exit(1 if unlike else 0)


def _summary(count: int, unlike: int, ranks: Sequence[int]) -> Text:
    if not count:
        return Text("no kernel was autotuned")
    summary = Text(f"{plural(count, 'choice')} of configurations")
    if len(ranks) < 2:
        return summary
    agree = (f"{unlike} differ", "red") if unlike else "all agree"
    return summary.append_text(Text.assemble(f" on {ranks_text(ranks)}: ", agree))


def _write(path: Path, run: store.Run, chosen: Sequence[Choice]) -> None:
    if not chosen:
        raise Problem(f"{run.path} has no winners to freeze", "record a case whose kernels are autotuned")
    write_winners(path, run.info.environment, [choice.first for choice in chosen])


def print_taken(
    file: WinnersFile, here: Environment, chosen: Sequence[Winner], unmatched: Sequence[Winner]
) -> None:
    """Print which entries of a winners file were used, ignored, or never requested."""
    frozen = [one for one in chosen if one.how == "frozen"]
    err.print(f"winners: {plural(len(frozen), 'choice')} frozen")
    if (file.target, file.triton) != (here.target, here.triton):
        there = f"for {file.target} by Triton {file.triton}"
        err.print(f"  they were chosen {there}; this is {here.target}, Triton {here.triton}")
    for one in chosen:
        if one.how != "frozen":
            how = "tuned" if one.how == "tuned" else "tuned before"
            err.print(f"  {how}, not in the file: {one.kernel} ({', '.join(one.key)})")
    for one in unmatched:
        err.print(f"  in the file, and not asked for: {one.kernel} ({', '.join(one.key)})")
