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
from tracing.case import load_case
from tracing.cli.app import err, out
from tracing.cli.compare import print_divergence
from tracing.errors import Problem
from tracing.model import SCHEMA, Perturbed, RunInfo
from tracing.report import divergence as report
from tracing.report.text import plural


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
        from tracing.record.repeat import recordings
        from tracing.record.run import Device

        loaded, device = load_case(case), Device(settings.target)
    info = RunInfo(
        SCHEMA, loaded.name, str(loaded.path), tuple(sys.argv), settings.seed, store.now(),
        device.environment(),
    )  # fmt: skip
    repeats: list[Repeat] = []
    first: store.Run | None = None
    with _bar() as bar:
        task = bar.add_task(loaded.name, total=settings.count, stage="")
        recorded = recordings(
            loaded, device, settings.count, runs, info,
            lambda stage: bar.update(task, stage=stage),
            fresh=settings.fresh_caches, deterministic=deterministic, perturb=settings.perturb,
        )  # fmt: skip
        for index, (run, outcome) in enumerate(recorded):
            if outcome.status == "failed":
                raise Problem(f"run {index} failed: {outcome.detail}", f"`tracing show {run.path}`")
            bar.advance(task)
            if first is None:
                first = run
                count = sum(1 for process in run.processes() for _ in run.rows(process))
                out.print(
                    f"run 0: {plural(count, 'launch')} recorded, {escape(outcome.detail)}  [dim]{run.name}[/]"
                )
            else:
                repeats.append(_compared(first, run, index, settings))
    _conclude(repeats)
    return repeats


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TextColumn("[dim]{task.fields[stage]}[/]"), console=err, transient=True)


def _compared(first: store.Run, run: store.Run, index: int, settings: Settings) -> Repeat:
    comparison = Comparison(first, run, settings.window)
    perturbed = tuple(run.records(Perturbed))
    everything = tuple(comparison)
    found = unasked(everything, perturbed)
    results = differing_results(first, run)
    if results and not found and comparison.suspect:
        found = (comparison.suspect,)
    out.print(f"run {index}: compared with run 0  [dim]{run.name}[/]")
    for name in results:
        out.print(f"  [yellow]⚠[/]  {name} differs")
    names = ("run 0", f"run {index}")
    for number, one in enumerate(found[: settings.limit]):
        if number == 0 and one.index > 0:
            out.print(f"  the first {plural(one.index, 'launch')}: equal")
        print_divergence(one, (first, run), names, first=number == 0)
    if not found:
        out.print(f"  [green]✓[/] {plural(comparison.pairs, 'launch')}: all read and wrote the same bits")
        if others := len(everything) - len(found):
            out.print(f"    {plural(others, 'kernel')} in another configuration, as asked for")
        if results:
            out.print("  → what differs comes from operators, from the host, or from what was not covered")
    for line in report.summary_text(comparison):
        out.print(f"  {line}")
    return Repeat(index, found, results, comparison.pairs, perturbed)


def _conclude(repeats: list[Repeat]) -> None:
    found = table(repeats)
    if found.kernels or found.perturbed:
        out.print()
        for line in report.table_text(found):
            out.print(line)
    out.print(f"{rate(repeats)} differ from run 0")
