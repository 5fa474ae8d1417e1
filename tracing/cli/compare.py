"""`tracing compare`: where two runs differ; repeated runs of a case, or the ranks of one job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.text import Text

from tracing import store
from tracing.analyze.align.alignment import WINDOW
from tracing.analyze.compare.accused import Accused, accused_of
from tracing.analyze.compare.divergence import Divergence, InputDiffers, OutputDiffers
from tracing.analyze.compare.evidence import evidence
from tracing.analyze.compare.suspect import suspect
from tracing.analyze.compare.verdict import ComparisonVerdict, ResultCause
from tracing.analyze.runs.call_sites import visit
from tracing.analyze.runs.compilers import says_nothing_of_compilers
from tracing.analyze.runs.element_values import differing_values
from tracing.cli import hints
from tracing.cli.app import RUNS, Runs, app, out
from tracing.cli.questions import question_of
from tracing.cli.ranks import ranks_compared
from tracing.cli.replay import replayed
from tracing.cli.replay_answer import Replaying
from tracing.cli.swap import VersionOption, swapped
from tracing.errors import Problem
from tracing.report import comparison as report
from tracing.report import text
from tracing.report.comparison_json import divergence_json, result_json, without_launch_json
from tracing.report.divergence import cause_text, divergence_text

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
    VersionOption | None,
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
Json = Annotated[bool, typer.Option("--json", help="Of two runs: print the answer as one JSON object.")]

Pair = tuple[store.Run, store.Run]


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
    as_json: Json = False,
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
    _require_alike(a, b, anyway, quiet=as_json)
    if question == "swap":
        raise typer.Exit(swapped(a, b, swap_with, each_launch))
    verdict = ComparisonVerdict.of(a, b, window)
    if as_json:
        raise typer.Exit(_print_json((a, b), verdict))
    how = Replaying(times, fpsan, runs) if question == "replay" else None
    raise typer.Exit(_print_compared((a, b), verdict, limit, how))


def _require_alike(a: store.Run, b: store.Run, anyway: bool, quiet: bool) -> None:
    for line in text.difference_of_infos(a.info, b.info) if not quiet else ():
        out.print(line)
    different = report.incomparable(a.info, b.info)
    if different and not anyway:
        raise Problem(f"the runs are of different {different}", "compare them all the same: `--anyway`")
    nothing = says_nothing_of_compilers(a, b) if different else None
    if nothing is not None and not quiet:
        out.print(
            Text.assemble(("note", "yellow"), f": {nothing.sentence}; their passes do: `{nothing.command}`")
        )


def _print_compared(runs: Pair, verdict: ComparisonVerdict, limit: int, how: Replaying | None) -> int:
    for one in verdict.start:
        out.print(Text.assemble(("✗ start", "bold red"), f": {one.title} differs: {one.a} | {one.b}"))
    typed: list[str] = []  # the commands below the first divergence
    for count, found in enumerate(verdict, 1):
        if count <= limit:
            typed += print_divergence(found, runs, ("a", "b"), first=count == 1, how=how)
    for one in (*verdict.results, *verdict.outcomes):
        out.print(Text.assemble(("✗", "red"), f" {one.title} differs: {one.a} | {one.b}"))
    if verdict.found > limit:
        more = text.plural(verdict.found - limit, "divergence")
        out.print(f"{more} more: `--limit {verdict.found}` shows them")
    for line in _conclusion(runs, verdict, typed):
        out.print(line)
    return verdict.status


def _conclusion(runs: Pair, verdict: ComparisonVerdict, typed: list[str]) -> Iterator[Text]:
    if verdict.why is not None and not (verdict.start or verdict.outcomes):
        yield from report.why_text(verdict.why, _deciding(verdict.why, runs))
    yield from report.summary_text(verdict.comparison, hints.of_unwritten(runs[1]))
    if not (verdict.found or verdict.start or verdict.outcomes):
        yield from report.equality_text(verdict.comparison, verdict.equal_results, verdict.results)
        yield from map(Text.from_markup, text.uncovered_text(runs))
    elif verdict.found and verdict.results and (swap := hints.of_results(*runs)) not in typed:
        yield Text(f"which kernels make the results differ: `{swap}`")


def _deciding(why: ResultCause, runs: Pair) -> str | None:
    if why.cause is not None and accused_of(why.cause, Accused("result", why.result.name)).certain:
        return None
    return hints.of_facts(*runs)


def print_divergence(
    found: Divergence,
    runs: Pair,
    names: tuple[str, str],
    first: bool,
    how: Replaying | None = None,
    commands: bool = True,
) -> list[str]:
    """Print one divergence, what speaks for a cause and, below the first, the commands to type next: these.

    how      -- the first one's kernel is replayed; None: it is not
    commands -- False: they were printed before
    """
    site, values = _context(found, runs)
    for line in divergence_text(found, names, first=first, site=site, values=values):
        out.print(line)
    try:
        for line in _further(found, runs, how if first else None):
            out.print(line)
        typed = hints.of_divergence(found, runs) if first and commands else []
    except Problem as problem:  # a run that lost its blobs has launches and digests all the same
        out.print(Text(f"    no more is known: {problem.problem}"))
        return []
    for command in typed:
        out.print(Text(f"    next      {command}"))
    return typed


def _context(found: Divergence, runs: Pair) -> tuple[Any, list[tuple[int, Any, Any]]]:
    # the call site, and the elements that differ
    pair = found.pair
    site = visit(runs[1 if pair.a is None else 0], pair.rank, pair.launch)
    if not isinstance(found, (InputDiffers, OutputDiffers)) or pair.a is None or pair.b is None:
        return site, []
    launches = pair.a.index, pair.b.index
    side: Any = "before" if isinstance(found, InputDiffers) else "after"
    return site, differing_values(runs, pair.rank, launches, found.position, side)


def _further(found: Divergence, runs: Pair, how: Replaying | None) -> Iterator[Text]:
    for line in evidence(runs, found):
        yield Text(f"    → {line}")
    for line in _replayed(found, runs, how) if how else ():
        yield Text(f"    {' ' if line.startswith(' ') else '→'} {line}")
    if decides := hints.deciding(found, runs):
        yield Text(f"    decides   {decides}")


def _replayed(found: Divergence, runs: Pair, how: Replaying) -> Iterator[str]:
    try:
        launches = suspect(found, runs)
    except Problem as problem:
        yield f"not replayed: {problem.problem}"
        return
    yield from replayed(runs, launches, found.pair.rank, "b", how)


# ---- as JSON


def _print_json(runs: Pair, verdict: ComparisonVerdict) -> int:
    entries = [*_starts(verdict), *(_as_json(found, runs) for found in verdict)]
    if not entries:
        entries = list(_without_launch(runs, verdict))
    notes = verdict.comparison.notes
    answer = {
        "a": str(runs[0].path), "b": str(runs[1].path), "status": verdict.status, "pairs": notes.pairs,
        "consequences": notes.consequences,
        "repeats": sum(verdict.comparison.repeated.values()) - notes.reported,
        "divergences": entries,
        "results": [result_json(one) for one in verdict.results],
        "start": [result_json(one) for one in verdict.start],
        "outcomes": [result_json(one) for one in verdict.outcomes],
        "swapped": notes.swapped, "uninitialised": notes.uninitialised, "unwritten": notes.unwritten,
        "not_comparable": [f"{argument} of {kernel}" for kernel, argument in sorted(notes.addresses)],
        "selected": notes.selected,
        "not_compared": notes.notes,
    }  # fmt: skip
    print(json.dumps(answer, indent=2))
    return verdict.status


def _as_json(found: Divergence, runs: Pair) -> dict[str, Any]:
    site, values = _context(found, runs)
    return divergence_json(
        found, site=site, values=values, evidence=list(evidence(runs, found)),
        commands=list(hints.of_divergence(found, runs)), decides=hints.deciding(found, runs),
    )  # fmt: skip


def _starts(verdict: ComparisonVerdict) -> Iterator[dict[str, Any]]:
    # tensors that differ before the first launch: what the launches did with them follows from that
    for one in verdict.start[:1]:
        if one.tensor:
            yield without_launch_json("start", Accused("start", one.name), one.rank)


def _without_launch(runs: Pair, verdict: ComparisonVerdict) -> Iterator[dict[str, Any]]:
    why = verdict.why
    if verdict.outcomes:
        one = verdict.outcomes[0]
        yield without_launch_json("outcome", Accused("outcome", one.name), one.rank)
    elif why is not None:
        result = Accused("result", why.result.name)
        who = accused_of(why.cause, result) if why.cause else result
        told = list(cause_text(why.cause, ("a", "b"))) if why.cause else []
        yield without_launch_json("result", who, why.result.rank, told, _deciding(why, runs))
    elif verdict.start:
        one = verdict.start[0]
        yield without_launch_json("start", Accused("start", one.name), one.rank)
