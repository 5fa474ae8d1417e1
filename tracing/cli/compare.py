"""`tracing compare`: where two runs differ; repeated runs of a case, or the ranks of one job."""

from __future__ import annotations

from typing import Annotated

import typer

from tracing import store
from tracing.analyze.alignment import WINDOW
from tracing.analyze.cause import evidence
from tracing.analyze.comparison import Comparison
from tracing.analyze.determinism import differing_results
from tracing.analyze.divergence import Divergence
from tracing.cli import hints
from tracing.cli.alone import Replaying, replay_text
from tracing.cli.app import RUNS, Runs, app, out
from tracing.cli.ranks import ranks_compared
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
Limit = Annotated[int, typer.Option(help="Show this many divergences at most.")]
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
    if (replay or fpsan) and (ranks or repeat is not None):
        raise Problem("--replay is of two runs", "`tracing compare RUN RUN --replay`")
    if repeat is not None:
        if len(names) != 1:
            raise Problem("--repeat wants one case", "`tracing compare --repeat 10 CASE`")
        if swap:
            raise Problem("--swap is between two runs", "`tracing compare RUN RUN --swap`")
        from tracing.cli.repeat import Settings, repeated

        settings = Settings(repeat, seed, target, fresh_caches, deterministic, perturb, limit, window)
        raise typer.Exit(repeated(names[0], runs, settings))
    if ranks:
        if len(names) != 1:
            raise Problem("--ranks wants one run", "`tracing compare RUN --ranks`")
        raise typer.Exit(ranks_compared(store.open_run(names[0], runs), limit))
    if len(names) != 2:
        raise Problem(f"two runs are compared, not {len(names)}", "`tracing compare RUN RUN`")
    a, b = (store.open_run(name, runs) for name in names)
    _require_alike(a, b, anyway)
    if swap:
        raise typer.Exit(swapped(a, b, swap_with, each_launch))
    how = None
    if replay or fpsan:
        how = Replaying(times, fpsan, runs)
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
    for line in report.summary_text(comparison):
        out.print(line)
    if count:
        for command in hints.of_results(a.path, b.path) if results else ():
            out.print(f"which kernels make the results differ: `{command}`", markup=False)
        return 1
    launches = text.plural(comparison.pairs, "launch")
    without = [run.name for run in (a, b) if run.info.digests == "none"]
    what = f"no digests in {', '.join(without)}" if without else "every digest"
    out.print(f"equal{'' if comparison.complete else ' as far as they go'}: {launches}, {what}")
    if results:
        out.print("the results differ all the same: by operators, by the host, or by what was not covered")
    return 1 if results else 0 if comparison.complete else 2


def print_divergence(
    found: Divergence,
    runs: tuple[store.Run, store.Run],
    names: tuple[str, str],
    first: bool,
    how: Replaying | None = None,
) -> None:
    """Print one divergence, what speaks for a cause and, below the first, the commands to type next.

    how -- the first one's kernel is replayed; None: it is not
    """
    run = runs[1] if found.only_in_b else runs[0]
    for line in report.divergence_text(found, names, first):
        out.print(line)
    for told in evidence(run, found):
        out.print(f"    → {told}", markup=False)
    for told in replay_text(found, runs, how) if first and how else ():
        out.print(f"    {' ' if told.startswith(' ') else '→'} {told}", markup=False)
    if first:
        for command in hints.of_launch(run.path, found.launch):
            out.print(f"    next      {command}", markup=False)
