"""`tracing compare`: where two runs differ; repeated runs of a case, or the ranks of one job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from tracing import store
from tracing.analyze.alignment import WINDOW
from tracing.analyze.cause import evidence
from tracing.analyze.comparison import Comparison
from tracing.analyze.determinism import differing_results
from tracing.analyze.divergence import Divergence
from tracing.analyze.suspect import suspect
from tracing.cli import hints
from tracing.cli.app import RUNS, Runs, app, out
from tracing.cli.questions import question_of
from tracing.cli.ranks import ranks_compared
from tracing.cli.replay import replayed
from tracing.cli.replay_answer import Replaying
from tracing.cli.swap import Version, swapped
from tracing.errors import Problem
from tracing.report import divergence as report
from tracing.report import text

Names = Annotated[list[str], typer.Argument(metavar="RUN RUN | CASE")]
Repeat = Annotated[
    int | None, typer.Option(min=2, help="Record a case this often; compare each run with the first.")
]
FreshCaches = Annotated[
    bool, typer.Option("--fresh-caches", help="With --repeat: compile anew for each run.")
]
Deterministic = Annotated[
    bool,
    typer.Option(
        "--deterministic",
        help="With --repeat: if runs differ, repeat under Inductor's deterministic settings.",
    ),
]
Perturb = Annotated[
    bool,
    typer.Option(
        "--perturb",
        help="With --repeat: change in each run what no program may rely on: uninitialised memory, "
        "the winners of autotuning (in turn: repeat 3 times at least), when launches start, on a GPU the "
        "order of streams, and without one that of programs.",
    ),
]
Seed = Annotated[int, typer.Option(help="With --repeat: seed of torch's random generators.")]
Target = Annotated[
    str, typer.Option(help="With --repeat: what kernels are compiled for where there is no GPU.")
]
Anyway = Annotated[
    bool, typer.Option("--anyway", help="Compare runs of different cases, versions or targets, too.")
]
Limit = Annotated[int, typer.Option(min=1, help="Show this many divergences at most.")]
Window = Annotated[
    int, typer.Option(min=8, help="How many launches ahead one that only one run has is looked for.")
]
Replay = Annotated[
    bool,
    typer.Option("--replay", help="Of two runs: replay the kernel that the first divergence accuses."),
]
Times = Annotated[int, typer.Option(min=1, help="With --replay: how often.")]
FpSan = Annotated[
    bool,
    typer.Option("--fpsan", help="With --replay, on a GPU: under Triton's FpSan, too. Rounding or bug?"),
]
Swap = Annotated[
    bool,
    typer.Option(
        "--swap",
        help="Of two runs: which kernels of the second, launched as the first launched them, give its "
        "results? Runs the case again and again; resumes where it was interrupted.",
    ),
]
SwapWith = Annotated[
    Version | None,
    typer.Option(
        "--with",
        help="With --swap: replace a kernel with the first run's source, or with its configuration "
        "(constants, num_warps, grid), not with both; or, on a GPU, with Triton's interpreter.",
    ),
]
EachLaunch = Annotated[
    bool, typer.Option("--each-launch", help="With --swap: which launches of these kernels, too.")
]
Ranks = Annotated[
    bool, typer.Option("--ranks", help="Of one run: compare the ranks of its job with each other.")
]


@app.command()
def compare(
    context: typer.Context,
    names: Names,
    repeat: Repeat = None,
    fresh_caches: FreshCaches = False,
    deterministic: Deterministic = False,
    perturb: Perturb = False,
    seed: Seed = 0,
    target: Target = "sm_90",
    anyway: Anyway = False,
    limit: Limit = 10,
    window: Window = WINDOW,
    replay: Replay = False,
    times: Times = 20,
    fpsan: FpSan = False,
    swap: Swap = False,
    swap_with: SwapWith = None,
    each_launch: EachLaunch = False,
    ranks: Ranks = False,
    runs: Runs = RUNS,
) -> None:
    """Compare two runs launch by launch: the first that differs, what is to blame, then what is independent.

    With --repeat N, record CASE N times and compare each run with the first. With --ranks, say which rank
    of a job left the others first.
    Exit status 0 if all is equal, 1 if something differs, 2 if a run could be compared in part only.
    """
    question = question_of(context, len(names))
    if question == "repeat":
        from tracing.cli.repeat import Settings, repeated

        settings = Settings(repeat or 0, seed, target, fresh_caches, deterministic, perturb, limit, window)
        raise typer.Exit(repeated(names[0], runs, settings))
    if question == "ranks":
        raise typer.Exit(ranks_compared(store.open_run(names[0], runs), limit))
    a, b = (store.open_run(name, runs) for name in names)
    _require_alike(a, b, anyway)
    if question == "swap":
        raise typer.Exit(swapped(a, b, swap_with, each_launch))
    how = Replaying(times, fpsan, runs) if question == "replay" else None
    raise typer.Exit(_compared(a, b, limit, window, how))


def _require_alike(a: store.Run, b: store.Run, anyway: bool) -> None:
    for line in text.difference_of_infos(a.info, b.info):
        out.print(line)
    different = report.incomparable(a.info, b.info)
    if different and not anyway:
        raise Problem(f"the runs are of different {different}", "compare them all the same: `--anyway`")


def _compared(a: store.Run, b: store.Run, limit: int, window: int, how: Replaying | None) -> int:
    comparison = Comparison(a, b, window)
    count = 0
    for count, found in enumerate(comparison, 1):
        if count <= limit:
            print_divergence(found, (a, b), ("a", "b"), first=count == 1, how=how)
    results = differing_results(a, b)
    if results and not count and comparison.suspect:
        print_divergence(comparison.suspect, (a, b), ("a", "b"), first=True, how=how)
    for name in results:
        out.print(f"[red]✗[/] {name} differs", highlight=False)
    if count > limit:
        out.print(f"{text.plural(count - limit, 'divergence')} more: `--limit {count}` shows them")
    for line in report.summary_text(comparison, hints.of_unwritten(a)):
        out.print(line)
    if not count:
        for line in report.equality_text(comparison, results):
            out.print(line)
    elif results:
        out.print(f"which kernels make the results differ: `{hints.of_results(a, b)}`", markup=False)
    return 1 if count or results else 0 if comparison.complete else 2


def print_divergence(
    found: Divergence,
    runs: tuple[store.Run, store.Run],
    names: tuple[str, str],
    first: bool,
    how: Replaying | None = None,
    commands: bool = True,
) -> None:
    """Print one divergence, what speaks for a cause and, below the first, the commands to type next.

    how      -- the first one's kernel is replayed; None: it is not
    commands -- False: they were printed before
    """
    for line in report.divergence_text(found, names, first):
        out.print(line)
    try:
        _print_further(found, runs, first and commands, how if first else None)
    except Problem as problem:  # a run that lost its blobs has launches and digests all the same
        out.print(f"    no more is told: {problem.problem}", markup=False)


def _replay_text(found: Divergence, runs: tuple[store.Run, store.Run], how: Replaying) -> Iterator[str]:
    try:
        launches = suspect(found, runs)
    except Problem as problem:
        yield f"not replayed: {problem.problem}"
        return
    yield from replayed(runs, launches, found.rank, "a", how)


def _print_further(
    found: Divergence, runs: tuple[store.Run, store.Run], commands: bool, how: Replaying | None
) -> None:
    run = runs[1] if found.only_in_b else runs[0]
    for told in evidence(run, found):
        out.print(f"    → {told}", markup=False)
    for told in _replay_text(found, runs, how) if how else ():
        out.print(f"    {' ' if told.startswith(' ') else '→'} {told}", markup=False)
    for command in hints.of_launch(run, found.launch, found.rank) if commands else ():
        out.print(f"    next      {command}", markup=False)
