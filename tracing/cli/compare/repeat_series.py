"""Records a series of runs of one case or program for `tracing repeat`, and compares each with the first."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from tracing import store
from tracing.analyze.align.alignment import WINDOW
from tracing.analyze.compare.divergence_kinds import Divergence
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.analyze.runs.determinism import Repeat, rate, table, unasked
from tracing.analyze.runs.results import uncomparable_results
from tracing.cli.answers import hints
from tracing.cli.answers.divergence_answer import print_divergence
from tracing.cli.answers.findings import memory_findings_text
from tracing.cli.app import err, out, spinner
from tracing.errors import Problem
from tracing.model import Outcome, Perturbed
from tracing.report.compare.comparison import summary_text
from tracing.report.compare.repeat import (
    WARNING,
    equal_text,
    hashes_text,
    table_text,
    unlike_eager_text,
    warnings_text,
)
from tracing.report.findings import uncovered_text
from tracing.report.text import plural

_FAILURES = 2  # after this many failures without a finished run the case is broken


_Divergences: TypeAlias = tuple[tuple[str, int], ...]  # the kind and the launch of each


@dataclass(frozen=True, slots=True)
class RepeatSettings:
    """The settings for repeating a case, and for comparing its runs."""

    count: int
    seed: int | None
    target: str
    fresh_caches: bool
    deterministic: bool
    perturb: bool
    limit: int


@dataclass(slots=True)
class RepeatSeries:
    """The runs of one series; each is compared with the first complete one, and printed, when it ends."""

    settings: RepeatSettings
    first: tuple[int, store.Run] | None = None
    repeats: list[Repeat] = field(default_factory=list)
    runs: dict[int, store.Run] = field(default_factory=dict)  # by their number
    unlike_eager: dict[int, str] = field(default_factory=dict)  # by run: its difference from eager
    deterministic: bool = False  # under Inductor's deterministic settings
    # launches below which the commands to type next were printed
    known: set[int] = field(default_factory=set)
    printed: dict[_Divergences, str] = field(default_factory=dict)  # the first run that diverged so
    failed_alike: str = ""  # the error with which the first run and later ones ended, after launches
    hash_seeds: dict[int, int | None] = field(default_factory=dict)  # of string hashes, by run

    @property
    def differing(self) -> bool:
        """True if a run differs from the first."""
        return any(one.differs for one in self.repeats)

    @property
    def reads_unwritten(self) -> bool:
        """True if every run that differs reads memory that nothing wrote: no seed changes that."""
        differing = [one for one in self.repeats if one.differs]
        return bool(differing) and all(one.reads_unwritten for one in differing)

    @property
    def depends_on_a_seed(self) -> bool:
        """True if one seed may make the runs equal.

        It changes no kernel, nor what nothing wrote, nor what a generator of the program draws.
        """
        differing = [one for one in self.repeats if one.differs]
        return any(
            not (one.reads_unwritten or one.is_of_a_kernel or one.is_of_a_generator) for one in differing
        )

    @property
    def memory_findings(self) -> list[Text]:
        """The accesses to memory that no correct kernel makes, of all runs, each once."""
        every = (line for run in self.runs.values() for line in memory_findings_text(run))
        return list({line.plain: line for line in every}.values())

    @property
    def hashes(self) -> str:
        """The sentence that runs differ with the seed of Python's string hashes; empty: they do not."""
        if self.first is None or self.reads_unwritten:  # a new process has other memory, too
            return ""
        own = self.hash_seeds.get(self.first[0])
        other = {index for index, seed in self.hash_seeds.items() if seed != own}
        return hashes_text(self.repeats, other, self.first[0])

    @property
    def status(self) -> int:
        """The exit status: 0 if the runs are equal, agree with eager, and access memory correctly.

        2 if they are equal up to an error with which all of them end.
        """
        if self.differing or self.unlike_eager or self.memory_findings:
            return 1
        return 2 if self.failed_alike else 0

    @property
    def next(self) -> list[str]:
        """The commands to type next, after those at each divergence."""
        if self.unlike_eager:
            return hints.of_wrong_result(self.runs[min(self.unlike_eager)])
        if self.first is None:
            return []
        if self.depends_on_a_seed:
            return hints.with_one_seed(self.first[1])
        if self.settings.perturb or self.deterministic or (self.differing and not self.reads_unwritten):
            return []
        return list(filter(None, [hints.of_unwritten(self.first[1])]))

    def record(self, case: str, program: Sequence[str], runs: Path, *, deterministic: bool) -> None:
        """Record and compare every run; raises Problem if none can be compared, or after an interruption."""
        with spinner("importing torch"):
            from tracing.compiler.child import opened_gpu
            from tracing.record.repeat import Interrupted, Series, hash_seed, recordings

        if opened_gpu():
            err.print(
                Text("importing torch opened the GPU: each run starts a new process instead of a fork", "dim")
            )
        self.deterministic = deterministic
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
                lambda where: err.print(Text.assemble(WARNING, f"  {where}")),
            )
            try:
                for index, (run, outcome) in enumerate(recorded):
                    bar.update(task, advance=1, refresh=True)
                    self.hash_seeds[index] = hash_seed(index, perturb=asked.perturb)
                    self._add(index, run, outcome)
                    ended += 1
            except Interrupted as interruption:
                self._conclude()
                _say_interrupted(ended, asked.count, interruption.run)
        self._conclude()

    def _add(self, index: int, run: store.Run, outcome: Outcome) -> None:
        self.runs[index] = run
        count = sum(1 for process in run.processes() for _ in run.rows(process))
        if outcome.status == "differs":
            self.unlike_eager[index] = outcome.detail
        if self.first is not None:
            self.repeats.append(self._compared(self.first, index, run, outcome))
        elif outcome.status == "failed" and count and self._fails_as_before(outcome):
            self.failed_alike = outcome.detail
            self.first = self.repeats[0].index, self.runs[self.repeats[0].index]
            self.repeats = [self._compared(self.first, index, run, outcome)]
        elif outcome.status == "failed" or (_refused(outcome) and not count):
            self._failed(index, run, outcome)
        else:
            self.first = index, run
            line = f"run {index}: {plural(count, 'launch')} recorded, {outcome.detail}  "
            out.print(Text.assemble(line, (run.name, "dim")))

    def _fails_as_before(self, outcome: Outcome) -> bool:
        # the launches before the error can be compared
        earlier = self.repeats[0] if self.repeats else None
        alike = earlier is not None and earlier.failure == outcome.detail
        return earlier is not None and alike and any(self.runs[earlier.index].launches())

    def _failed(self, index: int, run: store.Run, outcome: Outcome) -> None:
        # before any run ended
        failed = f"  failed: {outcome.detail}  "
        out.print(Text.assemble(f"run {index}: ", WARNING, failed, (run.name, "dim")))
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
        failure = outcome.detail if outcome.status == "failed" else ""
        failure = "" if failure == self.failed_alike else failure
        results = [*verdict.start, *verdict.results, *(() if failure else verdict.outcomes)]
        titles = tuple(one.title for one in results)
        repeat = Repeat(index, divergences, titles, verdict.comparison.notes.pairs, perturbed, failure)
        out.print(Text.assemble(f"run {index}: compared with run {number}  ", (run.name, "dim")))
        for line in warnings_text(results, failure):
            out.print(line)
        self._print_divergences(divergences, (reference, run), (f"run {number}", f"run {index}"))
        if not divergences:
            for line in equal_text(repeat, len(everything)):
                out.print(line)
        advice = "" if self.settings.perturb else hints.of_unwritten(reference)
        limit, counted = self.settings.limit, bool(divergences)
        for line in summary_text(verdict.comparison, advice, limit, counted=counted):
            out.print(Text("  ").append_text(line))
        return repeat

    def _print_divergences(
        self, divergences: tuple[Divergence, ...], runs: tuple[store.Run, store.Run], names: tuple[str, str]
    ) -> None:
        kinds = tuple((type(one).__name__, one.pair.launch.index) for one in divergences)
        if divergences and self.printed.setdefault(kinds, names[1]) != names[1]:
            out.print(f"  diverges as {self.printed[kinds]} does")
            return
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
        if self.hashes:
            out.print(self.hashes)
        differences = table(self.repeats)
        if differences.kernels or differences.results or differences.perturbed:
            out.print()
        for line in table_text(differences):
            out.print(line)
        for uncovered in uncovered_text([reference]):
            out.print(uncovered)
        for why in uncomparable_results(reference, reference):
            out.print(Text.assemble(("not compared", "yellow"), f": {why}"))
        out.print(f"{rate(self.repeats)} differ from run {number}")
        for line in self.memory_findings:  # a fault, even where every run is equal
            out.print(Text.assemble("✗ ", line))
        if self.unlike_eager:
            out.print(unlike_eager_text(self.unlike_eager, 1 + len(self.repeats), differing=self.differing))
        for command in self.next:
            out.print(f"    next      {command}")


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


def _refused(outcome: Outcome) -> bool:
    # a program that ended by itself, but not well: argparse, for example, refused its arguments
    return outcome.status == "ended" and outcome.fails
