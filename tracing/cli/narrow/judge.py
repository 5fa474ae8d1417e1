"""`tracing judge`: each kernel of a run against its reference."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import msgspec
import typer

from tracing import store
from tracing.analyze.graphs.changed_by_backends import changed_by_backends
from tracing.analyze.graphs.changing_passes import changing_passes, earlier_passes
from tracing.analyze.graphs.graph_pass_table import decomposing_pass
from tracing.analyze.judge.findings import (
    BEFORE_INDUCTOR,
    Finding,
    LibraryOff,
    PassesOff,
    SharedResult,
    TracedOff,
)
from tracing.analyze.judge.judgement import RunJudgement
from tracing.analyze.judge.reached_results import reached_results
from tracing.analyze.memory.evidence import other_arguments, wrong_accesses
from tracing.analyze.runs.recording_commands import is_virtual, require_recordable
from tracing.analyze.runs.repetition import Repetition, changed_since, other_results, repetition
from tracing.analyze.runs.unchecked_kernels import knows_eager, unchecked_kernels
from tracing.analyze.runs.unlaunched import left_out
from tracing.analyze.runs.winners import unlaunched_configurations
from tracing.cli.answers import hints, recording_hints
from tracing.cli.answers.findings import memory_findings_text, nan_text, unwritten_reads_text
from tracing.cli.answers.judge_answer import JudgedRun
from tracing.cli.app import NARROW, RUNS, Json, Runs, app, err, out, spinner
from tracing.cli.options.named import RunArgument
from tracing.cli.options.opened import open_run
from tracing.cli.options.trust import Trust, consenting
from tracing.cli.processes.new_recording import record_all_anew, recorded_before
from tracing.errors import Problem
from tracing.model import (
    CompiledGraph,
    FrameCompile,
    GraphTensor,
    GraphText,
    KeptTensor,
    KernelLaunch,
    LaunchLine,
    OperatorCall,
    Outcome,
    Result,
)
from tracing.report.findings import no_kernel_text
from tracing.report.run_json import memory_evidence_json
from tracing.store.cut_files import cut_files
from tracing.store.recorded_launch import find_launch, recorded_launch


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

    Exit status: 0 if all that could be judged is right, 1 if something is off or suspected, also by its
    accesses to memory, 2 if there is no answer, as of a program that failed.
    """
    run = consenting(open_run(name, runs), trust)
    _require_one_process(run)
    asked, repeated = run, Repetition()
    if lacks := lacking(run):
        _refuse_code(run, lacks)
        _refuse_failed(run)
        run, repeated = _recorded_anew(run, lacks, runs)
    answer = judgement_of(run, asked, repeated.contents)
    answer.keep(asked, run)
    if as_json:
        of_run = {"run": str(run.path), "memory_evidence": memory_evidence_json(run)}
        print(msgspec.json.encode({**of_run, **answer.json()}).decode())
    else:
        for line in (*memory_findings_text(run), *unwritten_reads_text(run), *nan_text(run)):
            out.print(line)
        for line in no_kernel_text(run) if not answer.judgement.launches else ():
            out.print(line)
        answer.print()
    raise typer.Exit(answer.status)


def _recorded_anew(asked: store.Run, lacks: str, runs: Path) -> tuple[store.Run, Repetition]:
    # raises Problem if its program launches other kernels by now
    run = recorded_before(asked)
    when = "was recorded anew before"
    repeated = repetition(asked, run) if run is not None else Repetition()
    if run is None or repeated.kernels:
        run, when = record_all_anew(asked, runs), "was recorded anew"
        repeated = repetition(asked, run)
    err.print(f"{asked.path} {lacks}; it {when}, with the contents of tensors, into {run.path}")
    if repeated.ended:
        record = recording_hints.keep_inputs(asked)
        raise Problem(
            f"{asked.path} cannot be judged, as its new recording {repeated.ended}",
            f"record it with the contents of tensors: `{record}`{_with_input(asked)}",
        )
    if repeated.kernels:
        other = f"{repeated.kernels}{changed_since(asked)}"
        raise Problem(
            f"{asked.path} cannot be judged, as its program launches other kernels now: {other}",
            f"what it does now: `tracing judge {shlex.quote(str(run.path))}`{_with_input(asked)}",
        )
    contents = repeated.contents or other_results(asked, run)
    if contents:
        repeated = replace(repeated, contents=f"{contents}{changed_since(asked)}")
    return run, repeated


def _with_input(asked: store.Run) -> str:
    if asked.info.kind != "program":
        return ""
    command = f"`{recording_hints.keep_inputs(asked)} < INPUT`"
    return f"\n  standard input was empty then; if the program reads it: {command}, then judge that run"


def _refuse_code(run: store.Run, lacks: str) -> None:
    if run.info.kind == "code":
        raise Problem(
            f"{run.path} {lacks}, and no command records what `tracing.recording()` surrounds",
            f"record it there: `{recording_hints.judge_command(run)}`",
        )


def _refuse_failed(run: store.Run) -> None:
    # recording the case once more would fail in the same manner
    for outcome in run.records(Outcome):
        if outcome.status == "failed" and run.info.kind != "case":
            require_recordable(run.info)
            problem = f"the program of {run.path} failed, and what its launches read was not kept"
            with_them = f"record it with them: `{recording_hints.keep_inputs(run)}`"
            raise Problem(f"{problem}: {outcome.detail}", with_them)
        if outcome.status == "failed":
            raise Problem(
                f"the case of {run.path} failed, and what its launches read was not kept: {outcome.detail}",
                f"the step of torch.compile that fails: `{hints.bisection(run)}`",
            )


def lacking(run: store.Run) -> str:
    """What a run lacks that the referee needs; "": nothing, or no graph and no reference would need it."""
    if any(run.records(GraphTensor)) and any(run.records(CompiledGraph)):
        return ""
    if cut_files(run.path):
        return "is damaged"
    kept = any(run.records(KeptTensor))
    if any(one.operators for one in run.records(FrameCompile)):  # else torch.compile compiled no graph
        return "has no compiled graph with its inputs" if kept else "kept no tensors"
    return "" if kept or is_virtual(run.info.environment) else "kept no tensors"


def judgement_of(
    run: store.Run, asked: store.Run, other_contents: str = "", stopped_by: Callable[[], str] = str
) -> JudgedRun:
    """Judge a run that kept the inputs and outputs of its launches.

    asked          -- the same run, or the one of which it is a new recording, without passes
    other_contents -- which contents its launches read that the run did not: "launch 3 k read another x"
    stopped_by     -- the signal that ends the judgement, which is then of a part; "": none
    """
    _require_one_process(run)
    processes = run.processes(LaunchLine)
    with spinner("importing torch") as now:
        from tracing.judge.run_referee import judge_run

        own = None if is_virtual(run.info.environment) else partial(_interpreted, run)
        judgement = _NOTHING
        if processes:
            judgement = judge_run(run, processes[0], now, own, unchecked_kernels(asked), stopped_by)
            if judgement.outcome is not None and judgement.suspects:
                reached = reached_results(run, processes[0], judgement.outcome)
                judgement = replace(judgement, reached=reached)
    untried = _unlaunched(asked, judgement.hand_written)
    not_covered = (*judgement.not_covered, *untried, *left_out(run), *changed_by_backends(run))
    accesses = wrong_accesses(run)
    judgement = replace(judgement, other_contents=other_contents, not_covered=not_covered)
    others = other_arguments(run)
    launches = [
        replace(one, why=others.get(one.launch, "")) if one.verdict == "off" else one
        for one in judgement.launches
    ]
    judgement = replace(judgement, wrong_accesses=accesses, launches=tuple(launches))
    judgement = replace(judgement, has_results=any(run.records(Result)))
    findings = _fewest_suspects_first([_with_passes(run, asked, one) for one in judgement.findings])
    judgement = replace(judgement, findings=findings, eager_known=knows_eager(asked))
    whole = [f"tracing judge {shlex.quote(str(run.path))}"] if judgement.stopped_by else []
    judged = JudgedRun(judgement, (), accesses)
    # the first launch, of which it lists the accesses
    launch = f"--launch {next(iter(accesses)).partition(' ')[0]}" if judged.accuses_accesses else ""
    shown = [f"tracing show {shlex.quote(str(run.path))} {launch}"] if launch else []
    return replace(judged, next=(*whole, *shown, *_next(run, asked, judgement)))


def _require_one_process(run: store.Run) -> None:
    count = len(run.processes(LaunchLine))
    if count > 1:
        record = recording_hints.keep_inputs_of_ranks(run)
        each = f"record each rank into a run of its own, and judge one: `{record}`"
        several = "judge a run of one process" if run.info.world_size == 1 else each
        raise Problem(f"{run.path} has launches of {count} processes", several)


def _with_passes(run: store.Run, asked: store.Run, finding: Finding) -> Finding:
    # asked -- recorded its graphs, if `run` was recorded anew without them
    graphs = {one.id: one for one in run.records(CompiledGraph)}
    graph = graphs.get(finding.graph)
    if graph is not None and _is_before_inductor(finding):
        of = (finding.wrong.name, finding.wrong.dtype) if isinstance(finding, TracedOff) else ()
        known = earlier_passes(run, graph, *of)  # memory may be shared anywhere
        return replace(finding, passes=earlier_passes(asked, graph, *of) if known is None else known)
    if not isinstance(finding, PassesOff) or graph is None:
        return finding
    passes = changing_passes(run, graph, finding.first) or changing_passes(asked, graph, finding.first)
    return replace(finding, passes=passes)


def _fewest_suspects_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    # of one graph: what clears a pass for one result is likely to clear it for the others
    def suspects(one: Finding) -> int:
        passes = one.passes if _is_before_inductor(one) else None
        return sum(not suspect.cleared for suspect in passes or ())

    graphs = [one.graph for one in findings]
    return tuple(sorted(findings, key=lambda one: (graphs.index(one.graph), suspects(one))))


def _is_before_inductor(finding: Finding) -> TypeGuard[TracedOff | SharedResult]:
    shared = isinstance(finding, SharedResult) and finding.cause == BEFORE_INDUCTOR
    return shared or isinstance(finding, TracedOff)


def _is_of_passes(finding: Finding) -> TypeGuard[PassesOff | TracedOff | SharedResult]:
    return isinstance(finding, PassesOff) or _is_before_inductor(finding)


def _lacks_passes(finding: PassesOff | TracedOff | SharedResult) -> bool:
    # the run did not record them, for all that is known
    return not finding.passes if isinstance(finding, PassesOff) else finding.passes is None


def _unlaunched(run: store.Run, kernels: Sequence[str]) -> Iterator[str]:
    freeze = f"`tracing winners {shlex.quote(str(run.path))} --output FILE`"
    for text in unlaunched_configurations(run, kernels):
        yield f"{text}; {freeze}, then `tracing run --winners FILE` with one of them in FILE"


def _interpreted(
    run: store.Run, launch: KernelLaunch, *, fill: int = 0, seed: int | None = None
) -> Mapping[str, Any]:
    from tracing.replay.reference import reference

    return reference(recorded_launch(run, launch.index), fill=fill, seed=seed)


_NOTHING = RunJudgement((), (), ("this run: it launched no kernel",))


def _graph_passes(run: store.Run, asked: store.Run, findings: Sequence[Finding]) -> Iterator[str]:
    # what shows the passes that are suspects; `run` may have been recorded anew without them
    known = run if any(run.records(GraphText)) else asked
    compiled = {one.id: (one.compile_id, one.phase) for one in run.records(CompiledGraph)}
    graphs = {(one.compile_id, one.phase): one for one in known.records(CompiledGraph)}
    first: dict[int, Finding] = {}
    for finding in findings:
        first.setdefault(finding.graph, finding)
    for one in first.values():
        graph = graphs.get(compiled.get(one.graph, ("", "forward")))
        if _is_of_passes(one) and not _lacks_passes(one) and graph is not None:
            earlier = one.passes if _is_before_inductor(one) else None
            suspects = [suspect.index for suspect in earlier or () if not suspect.cleared]
            if earlier is not None and not suspects:  # a decomposition
                suspects = [index] if (index := decomposing_pass(known, graph)) is not None else []
            which = f"--pass {suspects[0]}" if len(suspects) == 1 else "--changed"
            yield f"tracing passes {shlex.quote(str(known.path))} --graph {graph.id} {which}"


def _operators(run: store.Run, findings: Sequence[Finding]) -> Iterator[str]:
    # what shows the calls of operators, and what each one read
    if any(isinstance(one, LibraryOff) for one in findings) and any(run.records(OperatorCall)):
        yield f"tracing show {shlex.quote(str(run.path))} --operators"


def _next(run: store.Run, asked: store.Run, judgement: RunJudgement) -> list[str]:
    # without an answer if eager does not repeat; no step is to blame where the schema of an operator is
    bisected = hints.can_bisect(run) and judgement.eager_repeats and not judgement.undeclared
    if run.info.kind == "case" and judgement.outcome is not None:  # a build is compared with eager, too
        bisected = bisected and judgement.outcome.status not in ("passed", "not decided")
    bisect = [hints.bisection(run)] if bisected else []
    named = [one for one in (judgement.accused, *judgement.suspects) if one is not None]
    if named:
        _, launch = find_launch(run, named[0].launch)
        # the interpreter executes the source, so the generator of the source is to blame, no pass of Triton
        sourced = is_virtual(run.info.environment) or judgement.suspects
        further = bisect if sourced else []
        if judgement.accused is None:  # a suspect may be right
            return [*further, *hints.of_launch(run, launch)]
        return [*hints.of_launch(run, launch), *further]
    lacking = [_lacks_passes(one) for one in judgement.findings if _is_of_passes(one)]
    if lacking and all(lacking) and (run.info.kind == "program" or not bisect):
        return [recording_hints.judge_command(run)]
    if judgement.other_contents:  # a run that keeps its tensors is judged itself
        return [f"{recording_hints.keep_inputs(run)}; tracing judge {recording_hints.latest(run)}"]
    shown = [*dict.fromkeys(_graph_passes(run, asked, judgement.findings))]
    shown += _operators(run, judgement.findings)
    unexplained = judgement.findings or judgement.differs or run.info.kind == "program"
    return [*(bisect if unexplained else []), *shown]
