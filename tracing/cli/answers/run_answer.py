"""The answer of `tracing run`: the verdict on a recorded case, or how it failed, and the exit status."""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from tracing import environment, store
from tracing.analyze.runs.unchecked_kernels import checked_kernels, knows_eager, unchecked_kernels
from tracing.analyze.runs.unlaunched import reasons_for_no_kernel
from tracing.cli.answers import hints
from tracing.cli.answers.findings import findings_text
from tracing.cli.answers.judge_answer import JudgedRun
from tracing.cli.app import err
from tracing.cli.look.passes.failure import unfinished
from tracing.cli.look.show import print_run
from tracing.cli.options.derived import open_derived
from tracing.cli.processes.guard import KilledProcess
from tracing.errors import Problem
from tracing.model import Failure, Outcome
from tracing.report.findings import crashed_at
from tracing.report.hand_written import reference_text, suspect_text, unchecked_text
from tracing.report.passes.passes import failed_pass_text
from tracing.report.run_json import memory_evidence_json
from tracing.report.text import outcome_lines
from tracing.store.crash import crashes

_LINES = 16  # of an error's message that are shown


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """A run that has ended, and the options of the command."""

    run: store.Run
    outcome: Outcome
    judgement: JudgedRun | None = None
    hash_failure: str = ""  # the error of the user's hash function

    @property
    def status(self) -> int:
        """The exit status of the command."""
        status = {"passed": 0, "no kernel": 2, "compiled": 0, "differs": 1, "out of bounds": 1}.get(
            self._verdict, 2
        )
        return status or (self.judgement.status if self.judgement is not None else 0)

    def print(self, *, show: bool, as_json: bool) -> int:
        """Print the answer; returns the exit status. Raises Problem if the user's hash function failed."""
        self._print_outcome(show=show and not as_json)
        if self.judgement is not None and not as_json:
            self.judgement.print()
        print(json.dumps(self.json(), indent=2) if as_json else self.run.path)
        return self.status

    def json(self) -> dict[str, object]:
        """The keys of `tracing run --json`."""
        answer: dict[str, object] = {
            "run": str(self.run.path),
            "status": self.status,
            "outcome": self._verdict,
            "detail": self.outcome.detail,
            "differing": list(self.outcome.differing),
            "less_precise": list(self.outcome.less_precise),
            "unchecked_kernels": self._unchecked,
            "memory_evidence": memory_evidence_json(self.run),
            "next": self._next,
        }
        return answer if self.judgement is None else {**answer, "judgement": self.judgement.json()}

    @property
    def _verdict(self) -> str:
        # a case that launched no kernel was not tested; of a job, another rank may launch its kernels
        single = self.run.info.world_size == 1
        without = self.outcome.status == "passed" and single and reasons_for_no_kernel(self.run)
        return "no kernel" if without else self.outcome.status

    @property
    def _unchecked(self) -> list[str]:
        agrees = self.outcome.status in ("passed", "out of bounds")
        return unchecked_kernels(self.run) if agrees else []

    @property
    def _accused(self) -> bool:
        # results may agree that hide what is off
        return self._verdict == "passed" and self.judgement is not None and self.judgement.status == 1

    @property
    def _next(self) -> list[str]:
        return [] if self.judgement is not None else hints.of_outcome(self.run)  # a judgement prints its own

    def _print_outcome(self, *, show: bool) -> None:
        outcome, path = self.outcome, self.run.path
        if show:
            print_run(self.run)
        elif outcome.status != "failed":
            known, own = knows_eager(self.run), self._unchecked
            but = f"; but {unchecked_text(own, known=known)}" if own else ""
            verdict = self._verdict + (", but not judged right" if self._accused else "")
            for part in outcome_lines(f"{verdict}: {outcome.detail}{but}"):
                err.print(part)
            for line in findings_text(self.run):
                err.print(line)
            differs = outcome.status == "differs" and self.judgement is None
            if differs and (checked := checked_kernels(self.run)):
                err.print(suspect_text(checked))
            for command in self._next:
                err.print(f"    next      {command}")
        if self._unchecked and self.judgement is None:  # else the judgement says so
            err.print(reference_text(len(self._unchecked)))
        shows = outcome.status in ("passed", "out of bounds", "not decided") and not self._accused
        if shows and (show or not self._next):
            shown = "passes" if show else "show"
            err.print(f"    next      tracing {shown} {quote(str(path))}")
        if self.hash_failure and outcome.status != "failed":
            raise Problem(self.hash_failure, f"the run up to this point: `tracing show {path}`")
        if outcome.status == "failed":
            problems = _problems(self.run, outcome)
            err.print(f"tracing: the case failed{'' if problems else f': {outcome.detail}'}")
            against = (f"✗ {effect}" for effect in outcome.undeclared)
            for further in (*against, *problems, *_further(outcome)):
                err.print(f"  {further}")
            err.print(f"  the run up to this point, and the traceback: `tracing show {path}`")


def report_killed(killed: KilledProcess, *, as_json: bool) -> int:
    """Report a process that a signal or os._exit ended; its run names the pass. Returns the exit status."""
    if killed.run is None:
        err.print(f"tracing: {killed.by} ended the process before it had a run")
        return 2
    ended = crashes(killed.run)
    detail = f"{killed.by} ended the process{crashed_at(ended[0]) if ended else ''}"
    for record, reported in unfinished(open_derived(str(killed.run), killed.run.parent)):
        detail = f"{failed_pass_text(record, reported)} ({killed.by} ended the process)"
    writer = store.RunWriter(killed.run, environment.rank())
    with closing(writer):
        writer.append(outcome := Outcome("failed", detail))
    return RunAnswer(store.Run(killed.run), outcome).print(show=False, as_json=as_json)


def _problems(run: store.Run, outcome: Outcome) -> list[str]:
    # what failed, as compilers print it, so that editors open the line, which follows; [] if it is not known
    path = run.info.path
    failures = [one.problem(path) for one in run.records(Failure)]
    raised = re.fullmatch(rf"(.*) \({re.escape(Path(path).name)}:(\d+)\)", outcome.detail)
    if raised and not any(failures):
        failures = [f"{path}:{raised[2]}: error: {raised[1]}"]
    return [text for one in filter(None, failures) for text in (one, *_source_line(one))]


def _source_line(problem: str) -> Iterator[str]:
    path, line = problem.partition(": error: ")[0].rsplit(":", 1)
    if code := linecache.getline(path, int(line)).strip():
        yield f"  {line} | {code}"


def _further(outcome: Outcome) -> list[str]:
    # the error's text after its first line; the run has the rest, and excerpts of kernels
    if re.match(r"(CompilationError: )?at \d+:\d+:", outcome.message):
        return []
    lines = [line.rstrip() for line in outcome.message.strip().splitlines()[1:]]
    lines = [line for line in lines if line and line.strip() not in outcome.detail]
    lines = [line for line in lines if "TORCHDYNAMO_VERBOSE" not in line]
    return lines if len(lines) <= _LINES else [f"{len(lines)} more lines of its message are in the run"]
