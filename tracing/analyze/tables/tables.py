"""The tables of runs: their columns, as DuckDB types, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

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
from tracing.model import (
    KernelArg,
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

TableRows: TypeAlias = Iterator[Mapping[str, object]]
_OF_TENSOR = ("dtype", "shape", "stride", "bits", "l1", "nan", "inf")  # columns of results

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "launches": {
        "run": "varchar", "rank": "integer", "index": "bigint", "kernel": "varchar", "hash": "varchar",
        "target": "varchar", "grid": "integer[]", "num_warps": "integer", "num_stages": "integer",
        "num_ctas": "integer", "constants": "map(varchar, varchar)", "stream": "bigint", "device": "varchar",
        "phase": "varchar", "finished": "boolean",
    },
    "arguments": {
        "run": "varchar", "rank": "integer", "launch": "bigint", "position": "integer", "name": "varchar",
        "declared": "varchar", "dtype": "varchar", "shape": "bigint[]", "stride": "bigint[]",
        "storage": "bigint", "value": "varchar", "before": "varchar", "after": "varchar",
        "modified": "boolean", "l1": "double", "nan": "bigint", "inf": "bigint", "writer": "varchar",
    },
    "times": {
        "run": "varchar", "rank": "integer", "launch": "bigint", "wall_us": "double", "device_us": "double",
    },
    "passes": {
        "run": "varchar", "kernel": "varchar", "hash": "varchar", "target": "varchar", "index": "integer",
        "stage": "varchar", "name": "varchar", "pipeline": "varchar", "changed": "boolean",
        "ended": "boolean", "wall_ms": "double",
    },
    "divergences": {
        "run": "varchar", "reference": "varchar", "rank": "integer", "kind": "varchar", "index": "bigint",
        "kernel": "varchar", "argument": "varchar", "a": "varchar", "b": "varchar", "accused": "varchar",
        "accused_name": "varchar", "accused_index": "bigint", "runs": "varchar", "certain": "boolean",
    },
    "results": {
        "run": "varchar", "rank": "integer", "name": "varchar", "type": "varchar", "value": "varchar",
        "dtype": "varchar", "shape": "bigint[]", "stride": "bigint[]", "bits": "varchar", "l1": "double",
        "nan": "bigint", "inf": "bigint",
    },
    "winners": {
        "run": "varchar", "rank": "integer", "tuner": "varchar", "kernel": "varchar", "source": "varchar",
        "key": "varchar[]", "config": "map(varchar, varchar)", "how": "varchar", "candidates": "integer",
    },
    "landmarks": {
        "run": "varchar", "rank": "integer", "index": "bigint", "launch": "bigint", "kind": "varchar",
        "name": "varchar", "ordinal": "bigint", "ranks": "integer[]", "inputs": "varchar[]",
        "results": "varchar[]",
    },
}  # fmt: skip


def _arguments(runs: Sequence[Run]) -> TableRows:
    for run, rank, launch in _all(runs):
        for position, arg in enumerate(launch.args):
            key = {"run": run.name, "rank": rank, "launch": launch.index, "position": position}
            yield key | _argument(arg)


def _argument(arg: KernelArg) -> dict[str, object]:
    meta, known = arg.tensor, arg.after or arg.before
    return {
        "name": arg.name, "declared": arg.declared, "dtype": meta and meta.dtype,
        "shape": meta and meta.shape,
        "stride": meta and meta.stride, "storage": arg.storage,
        "value": None if meta or arg.value is None else str(arg.value),
        "before": arg.before and arg.before.bits, "after": arg.after and arg.after.bits,
        "modified": arg.modified, "l1": known and known.l1, "nan": known and known.nan,
        "inf": known and known.inf, "writer": arg.writer,
    }  # fmt: skip


def _times(runs: Sequence[Run]) -> TableRows:
    for run, rank, process in _processes(runs, LaunchTime):
        for one in run.view(process, LaunchTime, LaunchTime):
            key = {"run": run.name, "rank": rank, "launch": one.launch}
            yield key | {"wall_us": one.wall_us, "device_us": one.device_us}


def _passes(runs: Sequence[Run]) -> TableRows:
    for run in runs:
        for one in run.passes():
            compiled = one.compilation
            yield {
                "run": run.name, "kernel": compiled.kernel_name, "hash": compiled.hash,
                "target": compiled.target, "index": one.index, "stage": one.stage, "name": one.name,
                "pipeline": one.pipeline, "changed": one.changed, "ended": one.after is not None,
                "wall_ms": one.wall_ms,
            }  # fmt: skip


def _divergences(runs: Sequence[Run]) -> TableRows:
    for run in runs[1:]:
        for divergence in Comparison(runs[0], run):
            launch, who, sides = divergence.pair.launch, accused(divergence), _sides(divergence)
            yield {
                "run": run.name, "reference": runs[0].name, "rank": divergence.pair.rank,
                "kind": kind_of(divergence),
                "index": launch.index, "kernel": launch.kernel_name, "argument": argument_of(divergence),
                "a": sides[0], "b": sides[1], "accused": who.kind, "accused_name": who.name,
                "accused_index": who.a if who.a is not None else who.b, "runs": who.runs,
                "certain": who.certain,
            }  # fmt: skip


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
            yield {"run": run.name, "rank": rank, "name": one.name} | _value(one.value)


def _value(value: Value) -> dict[str, object]:
    if not isinstance(value, TensorValue):
        return {"type": value.type, "value": value_text(value)} | dict.fromkeys(_OF_TENSOR)
    meta, digest = value.meta, value.digest
    facts = (meta.dtype, meta.shape, meta.stride, digest.bits, digest.l1, digest.nan, digest.inf)
    return {"type": "Tensor", "value": None} | dict(zip(_OF_TENSOR, facts, strict=True))


def _winners(runs: Sequence[Run]) -> TableRows:
    for run, rank, process in _processes(runs, Winner):
        for one in run.view(process, Winner, Winner):
            yield {
                "run": run.name, "rank": rank, "tuner": one.tuner, "kernel": one.kernel,
                "source": one.source, "key": one.key,
                "config": {name: str(value) for name, value in one.config.items()}, "how": one.how,
                "candidates": len(one.candidates),
            }  # fmt: skip


def _landmarks(runs: Sequence[Run]) -> TableRows:
    for run, rank, process in _processes(runs, Landmark):
        for event in landmarks(run, process):
            assert event.landmark is not None
            yield {
                "run": run.name, "rank": rank, "index": event.landmark.index, "launch": event.launch,
                "kind": event.landmark.kind, "name": event.name, "ordinal": event.ordinal,
                "ranks": event.landmark.ranks, "inputs": event.inputs, "results": event.results,
            }  # fmt: skip


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
