"""`tracing repeat`: is a case deterministic, and if not, which kernel is to blame?"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from tracing import environment, store
from tracing.analyze.align.alignment import WINDOW
from tracing.analyze.compare.divergence_kinds import Divergence
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.analyze.runs.determinism import Repeat, rate, table, unasked
from tracing.analyze.runs.results import ResultDiffers, uncomparable_results
from tracing.cli.answers import hints
from tracing.cli.answers.divergence_answer import as_json as divergence_as_json
from tracing.cli.answers.divergence_answer import print_divergence
from tracing.cli.app import COMPARE, RUNS, Json, Runs, app, err, out, silent, spinner
from tracing.cli.options.program_words import ProgramArgument, ProgramCommand, program_of
from tracing.errors import Problem
from tracing.model import Outcome, Perturbed
from tracing.report.compare import comparison as report
from tracing.report.text import plural, uncovered_text

_WARNING = ("⚠", "yellow")
_FAILURES = 2  # after this many failures without a finished run the case is broken


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings for repeating a case, and for comparing its runs."""

    count: int
    seed: int | None
    target: str
    fresh_caches: bool
    deterministic: bool
    perturb: bool
    limit: int


@app.command(rich_help_panel=COMPARE, cls=ProgramCommand)
def repeat(
    words: ProgramArgument,
    times: Annotated[int, typer.Option(min=2, help="Number of runs.")] = 10,
    perturb: Annotated[
        bool,
        typer.Option(
            "--perturb",
            help="Change in each run what no program may rely on: uninitialised memory, the winners of "
            "autotuning (in turn: record at least 3 runs), when launches start, on a GPU the order of "
            "streams, and without a GPU that of programs.",
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
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of torch's random generators: 0 for a case. A program seeds them itself."),
    ] = None,
    target: Annotated[str, typer.Option(help="Without a GPU: the target to compile for.")] = "sm_90",
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many divergences of a run.")] = 10,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Test whether a case or program is deterministic, and if not, find the kernel to blame.

    Records it several times, each time in a separate process, and compares each run with the first.

    Example: tracing repeat silu --times 20 --perturb

    Exit status: 0 if all runs are equal, 1 if one differs or fails, or if they differ from eager, 2 if no
    run could be compared.
    """
    program = program_of(words)
    case = words[0] if program is None else shlex.join(words)
    words = [] if program is None else words
    settings = Settings(times, seed, target, fresh_caches, deterministic, perturb, limit)
    if not as_json:
        raise typer.Exit(_repeated(case, words, runs, settings)[0])
    with silent():
        status, series = _repeated(case, words, runs, settings)
    print(json.dumps(_as_json(case, status, series), indent=2))
    raise typer.Exit(status)


def _repeated(case: str, program: Sequence[str], runs: Path, settings: Settings) -> tuple[int, list[_Series]]:
    # the exit status; the second series has the deterministic settings
    environment.require_compiler()
    every = [series := _Series(settings)]
    series.record(case, program, runs, deterministic=False)
    if settings.deterministic and not series.differing:
        out.print("the deterministic settings were not tried: no run differed")
    elif settings.deterministic:
        out.print("\nunder Inductor's deterministic settings:")
        every.append(deterministic := _Series(settings))
        deterministic.record(case, program, runs, deterministic=True)
        _cured(deterministic.differing, rate(series.repeats).interval()[0], len(deterministic.repeats))
    return int(series.differing or bool(series.unlike_eager)), every


def _as_json(case: str, status: int, every: Sequence[_Series]) -> dict[str, Any]:
    series, deterministic = every[0], every[1] if len(every) > 1 else None
    first = series.first
    return {
        "case": case,
        "status": status,
        "first": str(first[1].path) if first else None,
        "runs": [_repeat_json(series, one) for one in series.repeats],
        "rate": report.rate_json(series.repeats),
        "next": series.next,
        "unlike_eager": {str(index): detail for index, detail in series.unlike_eager.items()},
        "deterministic": report.rate_json(deterministic.repeats) if deterministic else None,
    }


def _repeat_json(series: _Series, one: Repeat) -> dict[str, Any]:
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


def _cured(still: bool, least: float, count: int) -> None:
    if still:
        out.print("runs differ under the deterministic settings, too")
        return
    by_chance = (1 - least) ** count  # probability that no run differs although the rate is at least `least`
    out.print(f"the runs agree under the deterministic settings; {plural(count, 'run')} would be equal "
              "by chance "
              f"with a probability of at most {by_chance:.2g}")  # fmt: skip


@dataclass(slots=True)
class _Series:
    """The runs of one series, compared with the first complete one."""

    settings: Settings
    first: tuple[int, store.Run] | None = None
    repeats: list[Repeat] = field(default_factory=list)
    runs: dict[int, store.Run] = field(default_factory=dict)  # by their number
    unlike_eager: dict[int, str] = field(default_factory=dict)  # by run: its difference from eager
    known: set[int] = field(
        default_factory=set
    )  # launches below which the commands to type next were printed

    @property
    def differing(self) -> bool:
        """True if a run differs from the first."""
        return any(one.differs for one in self.repeats)

    @property
    def next(self) -> list[str]:
        """The commands to type next where a run differs from eager."""
        return hints.of_wrong_result(self.runs[min(self.unlike_eager)]) if self.unlike_eager else []

    def record(self, case: str, program: Sequence[str], runs: Path, *, deterministic: bool) -> None:
        """Record and compare every run; raises Problem if none can be compared, or after an interruption."""
        with spinner("importing torch"):
            from tracing.compiler.child import opened_gpu
            from tracing.record.repeat import Interrupted, Series, recordings

        if opened_gpu():
            err.print(
                Text("importing torch opened the GPU: each run starts a new process instead of a fork", "dim")
            )
        asked, ended = self.settings, 0
        series = Series(
            case, asked.target, asked.seed, asked.count, str(runs), tuple(sys.argv),
            fresh_caches=asked.fresh_caches, deterministic=deterministic, perturb=asked.perturb,
            program=tuple(program),
        )  # fmt: skip
        with _bar() as bar:
            task = bar.add_task(case, total=asked.count, stage="")
            recorded = recordings(
                series,
                lambda stage: bar.update(task, stage=stage, refresh=True),
                lambda where: err.print(Text.assemble(_WARNING, f"  {where}")),
            )
            try:
                for index, (run, outcome) in enumerate(recorded):
                    bar.update(task, advance=1, refresh=True)
                    self._add(index, run, outcome)
                    ended += 1
            except Interrupted as interruption:
                self._conclude()
                _say_interrupted(ended, asked.count, interruption.run)
        self._conclude()

    def _add(self, index: int, run: store.Run, outcome: Outcome) -> None:
        self.runs[index] = run
        if outcome.status == "differs":
            self.unlike_eager[index] = outcome.detail
        if self.first is not None:
            self.repeats.append(self._compared(self.first, index, run, outcome))
        elif outcome.status == "failed":
            self._failed(index, run, outcome)
        else:
            self.first = index, run
            count = plural(sum(1 for process in run.processes() for _ in run.rows(process)), "launch")
            line = f"run {index}: {count} recorded, {outcome.detail}  "
            out.print(Text.assemble(line, (run.name, "dim")))

    def _failed(self, index: int, run: store.Run, outcome: Outcome) -> None:
        # before any run ended
        failed = f"  failed: {outcome.detail}  "
        out.print(Text.assemble(f"run {index}: ", _WARNING, failed, (run.name, "dim")))
        self.repeats.append(Repeat(index, (), (), 0, tuple(run.records(Perturbed)), outcome.detail))
        if len(self.repeats) == _FAILURES:
            line = "; ".join(dict.fromkeys(one.failure for one in self.repeats))
            raise Problem(f"the first {_FAILURES} runs failed: {line}", f"`tracing show {run.path}`")

    def _compared(self, first: tuple[int, store.Run], index: int, run: store.Run, outcome: Outcome) -> Repeat:
        number, reference = first
        verdict = ComparisonVerdict.of(reference, run, WINDOW)
        perturbed = tuple(run.records(Perturbed))
        everything = tuple(verdict)
        divergences = unasked(everything, perturbed)
        results = [*verdict.start, *verdict.results]
        failure = outcome.detail if outcome.status == "failed" else ""
        titles = tuple(one.title for one in results)
        repeat = Repeat(index, divergences, titles, verdict.comparison.notes.pairs, perturbed, failure)
        out.print(Text.assemble(f"run {index}: compared with run {number}  ", (run.name, "dim")))
        for warning in _warnings(results, failure):
            out.print(Text.assemble("  ", _WARNING, f"  {warning}"))
        self._print_divergences(divergences, (reference, run), (f"run {number}", f"run {index}"))
        if not divergences:
            _print_equal(repeat, len(everything))
        advice = "" if self.settings.perturb else hints.of_unwritten(reference)
        for line in report.summary_text(verdict.comparison, advice):
            out.print(Text("  ").append_text(line))
        return repeat

    def _print_divergences(
        self, divergences: tuple[Divergence, ...], runs: tuple[store.Run, store.Run], names: tuple[str, str]
    ) -> None:
        first = divergences[0].pair.launch.index if divergences else 0
        if first > 0:
            last = first - 1
            out.print(f"  {f'launches #0-{last}' if last else 'launch #0'}: equal")
        for number, one in enumerate(divergences[: self.settings.limit]):
            commands = number == 0 and one.pair.launch.index not in self.known
            print_divergence(one, runs, names, first=number == 0, commands=commands)
        self.known |= {one.pair.launch.index for one in divergences[:1]}
        if more := len(divergences[self.settings.limit :]):
            out.print(f"  {plural(more, 'divergence')} more: `--limit {len(divergences)}` shows them")

    def _conclude(self) -> None:
        if not self.repeats or self.first is None:
            return
        number, reference = self.first
        differences = table(self.repeats)
        if differences.kernels or differences.results or differences.perturbed:
            out.print()
        for line in report.table_text(differences):
            out.print(line)
        for uncovered in uncovered_text([reference]):
            out.print(uncovered)
        for why in uncomparable_results(reference, reference):
            out.print(Text.assemble(("not compared", "yellow"), f": {why}"))
        out.print(f"{rate(self.repeats)} differ from run {number}")
        if self.unlike_eager:
            _print_unlike_eager(self.unlike_eager, 1 + len(self.repeats), self.differing)
            for command in self.next:
                out.print(f"    next      {command}")


def _warnings(results: list[ResultDiffers], failure: str) -> Iterator[str]:
    for one in results:
        yield f"{one.title} differs: {one.a} | {one.b}"
    if failure:
        yield f"failed: {failure}"


def _say_interrupted(ended: int, count: int, run: Path | None) -> None:
    unfinished = f"; run {ended} up to this point: {run}" if run is not None else ""
    raise Problem(f"interrupted; {plural(ended, 'run')} of {count} had ended{unfinished}") from None


def _bar() -> Progress:
    # runs are forks of this process: a thread that draws a spinner could hold a lock
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    stage = TextColumn("{task.fields[stage]}", style="dim", markup=False)
    return Progress(*columns, stage, console=err, transient=True, auto_refresh=False)


def _print_equal(repeat: Repeat, otherwise: int) -> None:
    # otherwise -- number of kernels that were launched in another configuration, which --perturb chose
    if repeat.pairs:
        equal = f" {plural(repeat.pairs, 'launch')}: all read and wrote the same bits"
        out.print(Text.assemble("  ", ("✓", "green"), equal))
    else:
        out.print("  no launch to compare")
    if otherwise:
        out.print(f"    {plural(otherwise, 'kernel')} in another configuration, which --perturb chose")
    if repeat.results:
        out.print("  → an operator, the host, or something that was not covered caused the difference")
        for one in repeat.perturbed:
            if one.what == "memory":
                out.print(f"  → or unwritten memory, which held {one.how} in this run")


def _print_unlike_eager(unlike: dict[int, str], count: int, differing: bool) -> None:
    which = "every run differs" if len(unlike) == count else f"{len(unlike)} of {count} runs differ"
    line = f"{which} from eager" if differing else f"the runs agree with one another, and {which} from eager"
    out.print(Text.assemble(_WARNING, f"  {line}: {next(iter(unlike.values()))}"))
