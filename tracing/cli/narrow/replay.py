"""`tracing replay`: execute one launch repeatedly on its recorded inputs, in a separate process."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Annotated

import msgspec
import typer

from tracing import store
from tracing.analyze.align.alignment import WINDOW
from tracing.analyze.compare.suspect import suspect
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.analyze.memory.evidence import memory_evidence
from tracing.analyze.replay.replay_verdict import (
    InputsChanged,
    NotComparable,
    NothingRecorded,
    Reproduced,
    UndecidedReplay,
)
from tracing.cli.answers import hints
from tracing.cli.answers.divergence_answer import print_divergence
from tracing.cli.answers.kept_answer import keep_answer
from tracing.cli.answers.memory_answer import print_memory_check
from tracing.cli.answers.replay_answer import ReplayAnswer, Replaying, answered
from tracing.cli.app import NARROW, RUNS, Json, Runs, app, out
from tracing.cli.options.launch_options import ExpectedKernelOption, RankOption, chosen_launch, first_launch
from tracing.cli.options.named import RunArgument
from tracing.cli.options.opened import open_run
from tracing.cli.options.trust import Trust, consenting
from tracing.errors import Problem
from tracing.model import MemoryEvidence, Side
from tracing.report import replay as report
from tracing.store.recorded_launch import RecordedLaunch, recorded_launch, same_call
from tracing.store.runs import folder_of_runs

_NOT_DECIDED = (NothingRecorded, UndecidedReplay, NotComparable, InputsChanged)
LaunchOfSide = dict[Side, RecordedLaunch]


@app.command(rich_help_panel=NARROW)
def replay(
    name: RunArgument,
    launch: Annotated[int | None, typer.Option(help="The launch, by its number in the run.")] = None,
    kernel: ExpectedKernelOption = None,
    rank: RankOption = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Replay the same call of this run, too, and compare the two."),
    ] = None,
    against_launch: Annotated[
        int | None, typer.Option(help="With --against: the launch, by its number in that run.")
    ] = None,
    times: Annotated[int, typer.Option(min=1, help="Number of replays of each launch.")] = 20,
    fpsan: Annotated[
        bool,
        typer.Option("--fpsan", help="On a GPU: replay under Triton's FpSan, too. Rounding or bug?"),
    ] = False,
    check_memory: Annotated[
        bool,
        typer.Option(
            "--check-memory",
            help="Instead: execute it once in Triton's interpreter, which sees accesses out of bounds and "
            "programs that read what others write, of a launch on a GPU too.",
        ),
    ] = False,
    trust: Trust = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Execute a launch on its recorded inputs; decide between a race, its code and its inputs.

    Replays the launch of --launch, or the first launch of --kernel. With --against and neither of them,
    replays the launch that the first divergence of the two runs accuses. Records missing inputs.

    Example: tracing replay demo-sound --launch 1 --against demo-faulty

    Exit status: 0 if every replay reproduced the recorded results, 1 if one did not, or if the run shows a
    race of the launch, 2 if undecided. With --check-memory: 1 if there is memory evidence, else 0.
    """
    run = consenting(open_run(name, runs), trust)
    other = consenting(open_run(against, runs), trust) if against is not None else None
    _require_one_case(run, other, against_launch)
    if launch is None and kernel is None:
        launches = _accused(run, other, quiet=as_json)
    else:
        launches = _named(run, launch, kernel, rank)
        if other is not None:
            launches["b"] = _same_call(launches["a"], other, against_launch, rank)
    if not launches:
        print("{}" if as_json else "the runs do not differ: there is nothing to replay")
        raise typer.Exit(0)
    if check_memory:
        raise typer.Exit(print_memory_check(launches["a"], runs, as_json=as_json))
    raise typer.Exit(_replayed(launches, Replaying(times, fpsan, runs), as_json=as_json))


def _replayed(launches: LaunchOfSide, how: Replaying, *, as_json: bool) -> int:
    answer = answered(launches, "a", how)
    if as_json:
        print(msgspec.json.encode(_json(answer)).decode())
    else:
        _print(answer)
    status = 0 if isinstance(answer.verdict, Reproduced) else 1
    if isinstance(answer.verdict, _NOT_DECIDED):
        status = 2
    if any(one.kind == "race" for one in _evidence(answer)):
        status = 1
    lines = [*_text(answer, _names(answer))]
    for one in launches.values():
        rank = store.rank_of(one.process)
        facts = {"rank": rank, "launch": one.launch.index, "kernel": one.launch.kernel_name}
        keep_answer(one.run, "replay", status, lines, **facts)
    return status


def _require_one_case(run: store.Run, other: store.Run | None, against_launch: int | None) -> None:
    if other is None:
        if against_launch is not None:
            raise Problem("--against-launch is the launch of another run", "name the run: `--against RUN`")
        return
    # options may differ: "gated_mlp+width=32"
    cases = [one.info.case.partition("+")[0] for one in (run, other)]
    if cases[0] != cases[1]:
        raise Problem(
            f"the runs are of different cases: {cases[0]} and {cases[1]}",
            f"--against takes another run of the same case; {store.listing(folder_of_runs(run.path))}",
        )


def _named(run: store.Run, launch: int | None, kernel: str | None, rank: int | None) -> LaunchOfSide:
    if launch is None:
        assert kernel is not None
        launch = first_launch(run, kernel, rank)
    return {"a": chosen_launch(run, launch, rank, kernel)}


def _same_call(
    first: RecordedLaunch, other: store.Run, launch: int | None, rank: int | None
) -> RecordedLaunch:
    index = same_call(first.run, first.process, first.launch, other) if launch is None else launch
    return recorded_launch(other, index, rank, first.launch.kernel_name)


def _accused(run: store.Run, other: store.Run | None, *, quiet: bool) -> LaunchOfSide:
    # launches of the first divergence; none if the runs do not differ
    if other is None:
        first_launch = next((one.index for one in run.launches()), 0)
        command = f"tracing replay {quote(str(run.path))}"
        raise Problem(
            "no launch is named", f"`{command} --launch {first_launch}`, or `{command} --against OTHER_RUN`"
        )
    pair = run, other
    verdict = ComparisonVerdict.of(*pair, WINDOW)
    first = next(iter(verdict), None)
    if first is None:
        if verdict.status:
            command = hints.comparison(run, other)
            raise Problem("no launch differs, so none is accused", f"`{command}` shows what differs")
        return {}
    if not quiet:
        print_divergence(first, pair, ("a", "b"), first=True, commands=False)
    try:
        launches = suspect(first, pair)
        rank = first.pair.rank
        recorded: LaunchOfSide = {
            "a": recorded_launch(run, launches[0], rank),
            "b": recorded_launch(other, launches[1], rank),
        }
        _require_one_kernel(recorded)
    except Problem as problem:
        raise Problem(f"not replayed: {problem.problem}", problem.remedy) from None
    return recorded


def _require_one_kernel(launches: LaunchOfSide) -> None:
    names = {one.launch.kernel_name for one in launches.values()}
    if len(names) > 1:
        raise Problem(f"the two runs launch different kernels here: {' and '.join(sorted(names))}")


def _print(answer: ReplayAnswer) -> None:
    paths = {side: str(one.run.path) for side, one in answer.launches.items()}
    for side, path in paths.items() if len(paths) > 1 else ():
        out.print(f"{side}  {path}")
    for line in _text(answer, _names(answer)):
        out.print(line)


def _names(answer: ReplayAnswer) -> dict[Side, str]:
    sides = list(answer.launches)
    return {side: side for side in sides} if len(sides) > 1 else {"a": "the run"}


def _text(answer: ReplayAnswer, names: report.RunNames) -> Iterator[str]:
    yield from answer.notes
    launches = {side: one.launch for side, one in answer.launches.items()}
    evidence = _evidence(answer)
    yield from report.replay_text(answer.result, answer.verdict, answer.recorded, launches, names, evidence)
    if answer.payloads is not None:
        yield from report.payload_text(answer.payloads)


def _evidence(answer: ReplayAnswer) -> list[MemoryEvidence]:
    # that a run has of its launch: the interpreter executes one program after another, as it did before
    every = [
        evidence
        for one in answer.launches.values()
        for evidence in memory_evidence(one.run, store.rank_of(one.process), one.launch.index)
    ]
    return list(dict.fromkeys(every))


def _json(answer: ReplayAnswer) -> dict[str, object]:
    launches = {side: one.launch for side, one in answer.launches.items()}
    evidence = _evidence(answer)
    fields = report.replay_json(answer.result, answer.verdict, answer.recorded, launches, evidence)
    fields["runs"] = {side: str(one.run.path) for side, one in answer.launches.items()}
    fields["notes"] = list(answer.notes)
    return fields
