"""Read the rows of each table from runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from tracing.analyze.compare.accused import accused
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    LaunchDiffers,
    OutputDiffers,
    argument_of,
    digests_of,
    kind_of,
    settings_of,
)
from tracing.analyze.compare.first_divergence import Comparison
from tracing.analyze.ranks.rank_events import landmarks
from tracing.analyze.runs.results import value_text
from tracing.analyze.tables.rows import (
    ArgumentRow,
    DivergenceRow,
    LandmarkRow,
    PassRow,
    ResultRow,
    TimeRow,
    WinnerRow,
)
from tracing.model import (
    KernelLaunch,
    Landmark,
    LaunchLine,
    LaunchTime,
    Record,
    Result,
    TensorValue,
    Value,
    Winner,
)
from tracing.store import Run, rank_of

TableRows: TypeAlias = Iterator[msgspec.Struct]


def _arguments(runs: Sequence[Run]) -> TableRows:
    for run, rank, launch in _all(runs):
        for position, arg in enumerate(launch.args):
            meta, known = arg.tensor, arg.after or arg.before
            yield ArgumentRow(
                run=run.name,
                rank=rank,
                launch=launch.index,
                position=position,
                name=arg.name,
                declared=arg.declared,
                dtype=meta.dtype if meta else None,
                shape=meta.shape if meta else None,
                stride=meta.stride if meta else None,
                storage=arg.storage,
                value=None if meta or arg.value is None else str(arg.value),
                before=arg.before.bits if arg.before else None,
                after=arg.after.bits if arg.after else None,
                modified=arg.modified,
                l1=known.l1 if known else None,
                nan=known.nan if known else None,
                inf=known.inf if known else None,
                writer=arg.writer,
            )


def _times(runs: Sequence[Run]) -> TableRows:
    for run, rank, process in _processes(runs, LaunchTime):
        for one in run.view(process, LaunchTime, LaunchTime):
            yield TimeRow(run.name, rank, one.launch, one.wall_us, one.device_us)


def _passes(runs: Sequence[Run]) -> TableRows:
    for run in runs:
        for one in run.passes():
            compiled = one.compilation
            yield PassRow(
                run=run.name,
                kernel=compiled.kernel_name,
                hash=compiled.hash,
                target=compiled.target,
                index=one.index,
                stage=one.stage,
                name=one.name,
                pipeline=one.pipeline,
                changed=one.changed,
                ended=one.after is not None,
                wall_ms=one.wall_ms,
            )


def _divergences(runs: Sequence[Run]) -> TableRows:
    for run in runs[1:]:
        for divergence in (comparison := Comparison(runs[0], run)):
            launch, who, sides = divergence.pair.launch, accused(divergence), _sides(divergence)
            yield DivergenceRow(
                run=run.name,
                reference=runs[0].name,
                rank=divergence.pair.rank,
                kind=kind_of(divergence),
                index=launch.index,
                kernel=launch.kernel_name,
                argument=argument_of(divergence),
                a=sides[0],
                b=sides[1],
                accused=who.kind,
                accused_name=who.name,
                accused_index=who.a if who.a is not None else who.b,
                runs=who.runs,
                certain=who.certain,
            )
        comparison.require_undamaged()


def _sides(divergence: Divergence) -> tuple[str | None, str | None]:
    # what each run has: a digest, or the settings of the launch that differ
    if isinstance(divergence, (InputDiffers, OutputDiffers)):
        a, b = digests_of(divergence)
        return a.bits if a else None, b.bits if b else None
    if isinstance(divergence, LaunchDiffers):
        of_a, of_b = (", ".join(f"{k}={v}" for k, v in side.items()) for side in settings_of(divergence))
        return of_a or None, of_b or None
    return None, None


def _results(runs: Sequence[Run]) -> TableRows:
    for run, rank, process in _processes(runs, Result):
        for one in run.view(process, Result, Result):
            yield _result(run.name, rank, one.name, one.value)


def _result(run: str, rank: int, name: str, value: Value) -> ResultRow:
    if not isinstance(value, TensorValue):
        return ResultRow(run, rank, name, value.type, value_text(value))
    meta, digest = value.meta, value.digest
    return ResultRow(
        run=run,
        rank=rank,
        name=name,
        type="Tensor",
        dtype=meta.dtype,
        shape=meta.shape,
        stride=meta.stride,
        bits=digest.bits,
        l1=digest.l1,
        nan=digest.nan,
        inf=digest.inf,
    )


def _winners(runs: Sequence[Run]) -> TableRows:
    for run, rank, process in _processes(runs, Winner):
        for one in run.view(process, Winner, Winner):
            config = {name: str(value) for name, value in one.config.items()}
            yield WinnerRow(
                run=run.name,
                rank=rank,
                tuner=one.tuner,
                kernel=one.kernel,
                source=one.source,
                key=one.key,
                config=config,
                how=one.how,
                candidates=len(one.candidates),
            )


def _landmarks(runs: Sequence[Run]) -> TableRows:
    for run, rank, process in _processes(runs, Landmark):
        for event in landmarks(run, process):
            assert event.landmark is not None
            yield LandmarkRow(
                run=run.name,
                rank=rank,
                index=event.landmark.index,
                launch=event.launch,
                kind=event.landmark.kind,
                name=event.name,
                ordinal=event.ordinal,
                ranks=event.landmark.ranks,
                inputs=event.inputs,
                results=event.results,
            )


def _processes(runs: Sequence[Run], kind: type[Record]) -> Iterator[tuple[Run, int, str]]:
    return ((run, rank_of(process), process) for run in runs for process in run.processes(kind))


def _all(runs: Sequence[Run]) -> Iterator[tuple[Run, int, KernelLaunch]]:
    for run, rank, process in _processes(runs, LaunchLine):
        for launch in map(run.joiner(process).launch, run.rows(process)):
            yield run, rank, launch


# all but launches: `tracing.analyze.tables.launch_table`
ROWS: Mapping[str, Callable[[Sequence[Run]], TableRows]] = {
    "arguments": _arguments, "times": _times, "passes": _passes,
    "divergences": _divergences, "results": _results, "winners": _winners, "landmarks": _landmarks,
}  # fmt: skip
