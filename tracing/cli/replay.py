"""`tracing replay`, and `tracing compare --replay`: one launch executed again, alone, and what that says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
import typer

from tracing import store
from tracing.analyze.replay.replay_verdict import NothingRecorded, Reproduced, UndecidedReplay
from tracing.cli.app import RUNS, Runs, app, out
from tracing.cli.launch_options import Kernel, LaunchNumber, Rank, chosen_launch
from tracing.cli.replay_answer import ReplayAnswer, Replaying, answered
from tracing.errors import Problem
from tracing.model import Side
from tracing.report import replay as report
from tracing.store.recorded_launch import RecordedLaunch, recorded_launch, same_call

Against = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Another run: the same call of the kernel there, on either's inputs."),
]


@app.command()
def replay(
    name: Annotated[str, typer.Argument(metavar="RUN", help='A run by path or name, or "latest".')],
    launch: LaunchNumber,
    kernel: Kernel = None,
    rank: Rank = None,
    against: Against = None,
    against_launch: Annotated[
        int | None, typer.Option(help="With --against: the launch, by its number in that run.")
    ] = None,
    times: Annotated[int, typer.Option(min=1, help="How often.")] = 20,
    fpsan: Annotated[
        bool, typer.Option("--fpsan", help="On a GPU: under Triton's FpSan, too. Rounding or bug?")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    runs: Runs = RUNS,
) -> None:
    """Execute one launch again and again on its recorded inputs. Is it a race? Is it the code?

    Inputs that were not kept are recorded again. Exit status 0 if every replay left what was recorded, 1 if
    one did not, 2 if that cannot be said.

    Example: tracing replay latest --launch 7 --against runs/silu-20261121-021546
    """
    run = store.open_run(name, runs)
    launches: dict[Side, RecordedLaunch] = {"a": chosen_launch(run, launch, rank, kernel)}
    if against is not None:
        launches["b"] = _same_call(launches["a"], store.open_run(against, runs), against_launch, rank)
    elif against_launch is not None:
        raise Problem("--against-launch is the launch of another run", "name the run: `--against RUN`")
    answer = answered(launches, "a", Replaying(times, fpsan, runs))
    if as_json:
        print(msgspec.json.encode(_json(answer)).decode())
    else:
        _print(answer)
    if isinstance(answer.verdict, NothingRecorded | UndecidedReplay):
        raise typer.Exit(2)
    raise typer.Exit(0 if isinstance(answer.verdict, Reproduced) else 1)


def replayed(
    runs: tuple[store.Run, store.Run],
    launches: tuple[int | None, int | None],
    rank: int,
    accused: Side,
    how: Replaying,
) -> Iterator[str]:
    """What replays of a launch of two runs say, or why there can be none; lines of text.

    launches -- the same call of one kernel in either run; None: that run does not have it
    accused  -- the run whose launch is executed on its own inputs first
    """
    sides: tuple[Side, Side] = ("a", "b")
    try:
        found = {
            side: recorded_launch(run, launch, rank)
            for side, run, launch in zip(sides, runs, launches, strict=True)
            if launch is not None
        }
        _require_one_kernel(found)
        first = accused if accused in found else next(iter(found))
        yield from _text(answered(found, first, how), {side: side for side in found})
    except Problem as problem:
        yield f"not replayed: {problem.problem}"
        if problem.remedy:
            yield f"  {problem.remedy}"


def _same_call(
    first: RecordedLaunch, other: store.Run, launch: int | None, rank: int | None
) -> RecordedLaunch:
    found = same_call(first.run, first.process, first.launch, other) if launch is None else launch
    return recorded_launch(other, found, rank, first.launch.kernel_name)


def _require_one_kernel(launches: Mapping[Side, RecordedLaunch]) -> None:
    names = {one.launch.kernel_name for one in launches.values()}
    if len(names) > 1:
        raise Problem(f"the two runs launch different kernels here: {' and '.join(sorted(names))}")


def _print(answer: ReplayAnswer) -> None:
    paths = {side: str(one.run.path) for side, one in answer.launches.items()}
    names: dict[Side, str] = {side: side for side in paths} if len(paths) > 1 else {"a": "the run"}
    for side, path in paths.items() if len(paths) > 1 else ():
        out.print(f"{side}  {path}", markup=False)
    for line in _text(answer, names):
        out.print(line, markup=False)


def _text(answer: ReplayAnswer, names: report.RunNames) -> Iterator[str]:
    yield from answer.notes
    launches = {side: one.launch for side, one in answer.launches.items()}
    yield from report.replay_text(answer.result, answer.verdict, answer.recorded, launches, names)
    if answer.payloads is not None:
        yield from report.payload_text(answer.payloads)


def _json(answer: ReplayAnswer) -> dict[str, object]:
    launches = {side: one.launch for side, one in answer.launches.items()}
    found = report.replay_json(answer.result, answer.verdict, answer.recorded, launches)
    found["runs"] = {side: str(one.run.path) for side, one in answer.launches.items()}
    found["notes"] = list(answer.notes)
    return found
