"""`tracing judge`: each kernel of a run against its reference."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import typer

from tracing import store
from tracing.analyze.judge.judgement import RunJudgement
from tracing.analyze.judge.reached_results import reached_results
from tracing.analyze.runs.recording_commands import is_virtual
from tracing.analyze.runs.unchecked_kernels import unchecked_kernels
from tracing.cli.answers import hints
from tracing.cli.answers.kept_answer import keep_answer
from tracing.cli.app import NARROW, RUNS, Json, Runs, app, err, out, spinner
from tracing.cli.options.named import RunArgument
from tracing.cli.options.opened import open_run
from tracing.cli.options.trust import Trust, consenting
from tracing.cli.processes.new_recording import record_all_anew, recorded_before
from tracing.errors import Problem
from tracing.model import (
    AnswerTable,
    CompiledGraph,
    FrameCompile,
    GraphTensor,
    KeptTensor,
    KernelLaunch,
    LaunchLine,
    Outcome,
)
from tracing.report.findings import memory_text
from tracing.report.judgement import judgement_json, judgement_text
from tracing.report.run_json import memory_evidence_json
from tracing.store.cut_files import cut_files
from tracing.store.recorded_launch import find_launch, recorded_launch

_ROWS = 1000  # launches of the table that is kept


@app.command(rich_help_panel=NARROW)
def judge(
    name: RunArgument,
    trust: Trust = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Compare each launch of Inductor's kernels with its FX nodes in float64, on the launch's own inputs.

    Names the first launch that is off, and the wrong elements. If the run has no tensor contents, records
    the case once more, inside the run's folder; later calls use that recording.

    Example: tracing judge demo-sound

    Exit status: 0 if all that could be judged is right, 1 if something is off or suspected, 2 if there is no
    answer.
    """
    run = consenting(open_run(name, runs), trust)
    asked = run
    if lacking := _lacking(run):
        _refuse_failed(run)
        earlier = recorded_before(run)
        run = earlier or record_all_anew(run, runs)
        when = "was recorded anew before" if earlier else "was recorded anew"
        err.print(f"{asked.path} {lacking}; it {when}, with all of it, into {run.path}")
    answer = judgement_of(run, asked)
    answer.keep(asked, run)
    if as_json:
        of_run = {"run": str(run.path), "memory_evidence": memory_evidence_json(run)}
        print(msgspec.json.encode({**of_run, **answer.json()}).decode())
    else:
        for line in memory_text(run):
            out.print(line)
        answer.print()
    raise typer.Exit(answer.status)


def _refuse_failed(run: store.Run) -> None:
    # recording the case once more would fail in the same manner
    for outcome in run.records(Outcome):
        if outcome.status == "failed":
            raise Problem(
                f"the case of {run.path} failed, and what its launches read was not kept: {outcome.detail}",
                f"the step of torch.compile that fails: `{hints.bisection(run)}`",
            )


def _lacking(run: store.Run) -> str:
    # what a run lacks that the referee needs; "": nothing, or no graph and no reference would need it
    if any(run.records(GraphTensor)) and any(run.records(CompiledGraph)):
        return ""
    if cut_files(run.path):
        return "is damaged"
    kept = any(run.records(KeptTensor))
    if any(one.operators for one in run.records(FrameCompile)):  # else torch.compile compiled no graph
        return "has no compiled graph with its inputs" if kept else "kept no tensors"
    return "" if kept or is_virtual(run.info.environment) else "kept no tensors"


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A judgement, and the commands to type next."""

    judgement: RunJudgement
    next: tuple[str, ...]

    @property
    def status(self) -> int:
        return self.judgement.status

    def print(self) -> None:
        """Print it for people."""
        for line in judgement_text(self.judgement, self.next):
            out.print(line)

    def json(self) -> dict[str, Any]:
        """The keys of `tracing judge --json`, without the run."""
        return {**judgement_json(self.judgement), "next": [*self.next]}

    def keep(self, asked: store.Run, judged: store.Run) -> None:
        """Keep the judgement in the run that was asked about.

        judged -- the run that kept tensors: the same one, or a new recording of its program
        """
        anew = [] if asked.path == judged.path else [f"recorded anew, with tensors: {judged.path}"]
        accused = self.judgement.accused or next(iter(self.judgement.suspects), None)
        known = accused is not None and _launches(asked, accused.launch, accused.kernel)
        keep_answer(
            asked,
            "judge",
            self.status,
            [*judgement_text(self.judgement, ()), *anew],
            next=self.next,
            launch=accused.launch if accused and known else None,
            kernel=accused.kernel if accused else "",
            tables=(_table(self.judgement),) if self.judgement.launches else (),
        )


def _launches(run: store.Run, index: int, kernel: str) -> bool:
    # a new recording may launch in another order
    with suppress(Problem):
        return find_launch(run, index)[1].kernel_name == kernel
    return False


def _table(judgement: RunJudgement) -> AnswerTable:
    rows = (
        (str(one.launch), one.kernel, one.verdict, ", ".join(one.nodes), one.why)
        for one in judgement.launches[:_ROWS]
    )
    columns = ("launch", "kernel", "verdict", "FX nodes", "why there is no reference")
    return AnswerTable("Judged launches", columns, tuple(rows))


def judgement_of(run: store.Run, asked: store.Run) -> JudgedRun:
    """Judge a run that kept the inputs and outputs of its launches.

    asked -- the same run, or the one of which it is a new recording, without passes
    """
    processes = run.processes(LaunchLine)
    if len(processes) > 1:
        raise Problem(f"{run.path} has launches of {len(processes)} processes", "judge a run of one process")
    with spinner("importing torch") as now:
        from tracing.judge.run_referee import judge_run

        own = None if is_virtual(run.info.environment) else partial(_interpreted, run)
        judgement = _NOTHING
        if processes:
            judgement = judge_run(run, processes[0], now, own, unchecked_kernels(asked))
            if judgement.outcome is not None and judgement.suspects:
                reached = reached_results(run, processes[0], judgement.outcome)
                judgement = replace(judgement, reached=reached)
    return JudgedRun(judgement, tuple(_next(run, judgement)))


def _interpreted(run: store.Run, launch: KernelLaunch) -> Mapping[str, Any]:
    from tracing.replay.reference import reference

    return reference(recorded_launch(run, launch.index))


_NOTHING = RunJudgement((), (), ("this run: it launched no kernel",))


def _next(run: store.Run, judgement: RunJudgement) -> list[str]:
    repeats = judgement.outcome is None or judgement.outcome.eager_repeats  # else it has no answer
    bisect = [hints.bisection(run)] if run.info.kind == "case" and repeats else []
    named = [one for one in (judgement.accused, *judgement.suspects) if one is not None]
    if named:
        _, launch = find_launch(run, named[0].launch)
        # the interpreter executes the source, so the generator of the source is to blame, no pass of Triton
        sourced = is_virtual(run.info.environment) or judgement.suspects
        return [*hints.of_launch(run, launch), *(bisect if sourced else [])]
    return bisect if judgement.findings or judgement.differs else []
