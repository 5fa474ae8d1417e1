"""`tracing compare --repeat`: is a case deterministic, and if not, which kernel is to blame?"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tracing import environment, store
from tracing.analyze.comparison import Comparison
from tracing.analyze.determinism import Repeat, differing_results, rate, table, unasked
from tracing.cli import hints
from tracing.cli.app import err, out
from tracing.cli.compare import print_divergence
from tracing.errors import Problem
from tracing.model import SCHEMA, Outcome, Perturbed, RunInfo
from tracing.report import divergence as report
from tracing.report.text import plural, uncovered_text


@dataclass(frozen=True, slots=True)
class Settings:
    """How a case is repeated, and how the runs are compared."""

    count: int
    seed: int
    target: str
    fresh_caches: bool
    deterministic: bool
    perturb: bool
    limit: int
    window: int


def repeated(case: str, runs: Path, settings: Settings) -> int:
    """Record a case several times, compare each run with the first and print what was found; the status."""
    environment.require_compiler()
    repeats = _series(case, runs, settings, deterministic=False)
    differing = any(one.differs for one in repeats)
    if settings.deterministic and not differing:
        out.print("the deterministic settings were not tried: no run differed")
    elif settings.deterministic:
        out.print("\nunder Inductor's deterministic settings:")
        again = _series(case, runs, settings, deterministic=True)
        _cured(any(one.differs for one in again), rate(repeats).interval()[0], len(again))
    return 1 if differing else 0


def _cured(still: bool, least: float, count: int) -> None:
    if still:
        out.print("the deterministic settings do not cure it")
        return
    by_chance = (1 - least) ** count  # that none differs although the rate is still at least that
    out.print(f"the deterministic settings cure it; {plural(count, 'run')} would be equal by chance "
              f"with a probability of at most {by_chance:.2g}")  # fmt: skip


def _series(case: str, runs: Path, settings: Settings, *, deterministic: bool) -> list[Repeat]:
    with err.status("importing torch"):
        from tracing.record.device import Device
        from tracing.record.repeat import recordings

        device = Device(settings.target)
        loaded = device.load(case)
    info = RunInfo(
        SCHEMA, loaded.name, str(loaded.path), tuple(sys.argv), settings.seed, store.now(),
        device.environment(),
    )  # fmt: skip
    repeats: list[Repeat] = []
    with _bar() as bar:
        task = bar.add_task(loaded.name, total=settings.count, stage="")
        recorded = recordings(
            loaded, device, settings.count, runs, info,
            lambda stage: bar.update(task, stage=stage),
            fresh=settings.fresh_caches, deterministic=deterministic, perturb=settings.perturb,
        )  # fmt: skip
        first = _first(*next(recorded))
        bar.advance(task)
        known: set[int] = set()  # launches below which the commands to type next were printed
        try:
            for index, (run, outcome) in enumerate(recorded, 1):
                bar.advance(task)
                repeats.append(_compared(first, run, index, outcome, settings, known))
        except KeyboardInterrupt:
            _conclude(repeats, first)
            ended = plural(1 + len(repeats), "run")
            raise Problem(f"interrupted; {ended} of {settings.count} had ended") from None
    _conclude(repeats, first)
    return repeats


def _first(run: store.Run, outcome: Outcome) -> store.Run:
    if outcome.status == "failed":
        raise Problem(f"run 0 failed: {outcome.detail}", f"`tracing show {run.path}`")
    count = plural(sum(1 for process in run.processes() for _ in run.rows(process)), "launch")
    out.print(f"run 0: {count} recorded, {escape(outcome.detail)}  [dim]{escape(run.name)}[/]")
    return run


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TextColumn("[dim]{task.fields[stage]}[/]"), console=err, transient=True)


def _compared(
    first: store.Run, run: store.Run, index: int, outcome: Outcome, settings: Settings, known: set[int]
) -> Repeat:
    comparison = Comparison(first, run, settings.window)
    perturbed = tuple(run.records(Perturbed))
    everything = tuple(comparison)
    found = unasked(everything, perturbed)
    results = differing_results(first, run)
    if results and not found and comparison.suspect:
        found = (comparison.suspect,)
    failure = outcome.detail if outcome.status == "failed" else ""
    repeat = Repeat(index, found, results, comparison.pairs, perturbed, failure)
    out.print(f"run {index}: compared with run 0  [dim]{escape(run.name)}[/]")
    for told in (*(f"{name} differs" for name in results), *([f"failed: {failure}"] if failure else [])):
        out.print(f"  [yellow]⚠[/]  {escape(told)}")
    names = ("run 0", f"run {index}")
    if found and found[0].index > 0:
        last = found[0].index - 1
        out.print(f"  {f'launches #0-{last}' if last else 'launch #0'}: equal")
    for number, one in enumerate(found[: settings.limit]):
        commands = number == 0 and one.launch.index not in known
        print_divergence(one, (first, run), names, first=number == 0, commands=commands)
    known |= {one.launch.index for one in found[:1]}
    if more := len(found[settings.limit :]):
        out.print(f"  {plural(more, 'divergence')} more: `--limit {len(found)}` shows them")
    if not found:
        _print_equal(repeat, len(everything))
    for line in report.summary_text(comparison, "" if settings.perturb else hints.of_unwritten(first)):
        out.print(f"  {line}")
    return repeat


def _print_equal(repeat: Repeat, otherwise: int) -> None:
    # otherwise -- how many kernels were launched in another configuration, as asked for
    if repeat.pairs:
        out.print(f"  [green]✓[/] {plural(repeat.pairs, 'launch')}: all read and wrote the same bits")
    else:
        out.print("  no launch to compare")
    if otherwise:
        out.print(f"    {plural(otherwise, 'kernel')} in another configuration, as asked for")
    if repeat.results:
        out.print("  → what differs comes from operators, from the host, or from what was not covered")
        for one in repeat.perturbed:
            if one.what == "memory":
                out.print(f"  → or from memory that nobody wrote: in this run it held {one.how}")


def _conclude(repeats: list[Repeat], first: store.Run) -> None:
    if not repeats:
        return
    found = table(repeats)
    if found.kernels or found.results or found.perturbed:
        out.print()
    for line in report.table_text(found):
        out.print(line)
    for line in uncovered_text([first]):
        out.print(line)
    out.print(f"{rate(repeats)} differ from run 0")
