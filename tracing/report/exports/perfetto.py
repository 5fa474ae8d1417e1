"""A run as a trace for ui.perfetto.dev: launches by rank and stream, steps, compilations and their passes.

Runs have durations and no start times. So launches follow one another in launch order, and a slice begins at
the end of the previous slice of any stream of its rank: the trace shows shares of time, not overlap.

Source: the JSON trace format of Chrome: complete events, "ph": "X", times in µs. Perfetto, which reads it,
orders them by their start, in whole ns, and drops a slice that ends after the one that it began in: an outer
slice comes before its inner ones, and ends are rounded, not durations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tracing.analyze.graphs.operation_lines import at_operations
from tracing.analyze.passes.compilations import compilations, label
from tracing.analyze.passes.pass_table import passes_by_hash
from tracing.model import KernelLaunch, StageArtefact
from tracing.report.run_json import scalar
from tracing.report.text import tensor_text
from tracing.store import Run, rank_of

SHORTEST = 1.0  # µs: the width of a launch without a recorded time
COMPILER = 1_000_000  # the process of the compilations of a run; ranks have the numbers below it
RUNS = 10_000_000  # distance of the processes of two runs

PerfettoEvent = dict[str, Any]


def write_perfetto(path: Path, runs: Iterable[Run]) -> None:
    """Write a trace of some runs; memory does not grow with their launches."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        separator = ""
        for number, run in enumerate(runs):
            for event in perfetto_events(run, number * RUNS):
                file.write(separator + json.dumps(event))
                separator = ",\n"
        file.write("\n]}\n")


def perfetto_events(run: Run, first: int = 0) -> Iterator[PerfettoEvent]:
    """The events of one run.

    first -- the number of its first process in the trace
    """
    for process in run.processes():
        rank = rank_of(process)
        yield _name("process_name", first + rank, 0, f"{run.name} rank {rank}")
        launches = map(at_operations(run, process), map(run.joiner(process).launch, run.rows(process)))
        yield from _launches(launches, first + rank)
    yield from _compilations(run, first + COMPILER)


def _name(kind: str, process: int, thread: int, name: str) -> PerfettoEvent:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _slice(
    name: str, process: int, thread: int, start: float, duration: float, **args: object
) -> PerfettoEvent:
    first, last = round(start * 1000), round((start + duration) * 1000)  # ns
    return {
        "ph": "X", "name": name, "pid": process, "tid": thread, "ts": first / 1000,
        "dur": (last - first) / 1000, "args": args,
    }  # fmt: skip


# ---- launches


def _launches(launches: Iterable[KernelLaunch], process: int) -> Iterator[PerfettoEvent]:
    # thread 0: steps; streams from 1
    streams: dict[int, int] = {}
    now, step, began = 0.0, -1, 0.0
    for launch in launches:
        if launch.stream not in streams:
            streams[launch.stream] = len(streams) + 1
            yield _name("thread_name", process, streams[launch.stream], f"stream {launch.stream}")
        if launch.step is not None and launch.step[0] != step:
            if step >= 0:
                yield _slice(f"step {step}", process, 0, began, now - began)
            else:
                yield _name("thread_name", process, 0, "steps")
            step, began = launch.step[0], now
        duration = _duration(launch)
        yield _slice(launch.kernel_name, process, streams[launch.stream], now, duration, **_arguments(launch))
        now += duration
    if step >= 0:
        yield _slice(f"step {step}", process, 0, began, now - began)


def _duration(launch: KernelLaunch) -> float:
    if launch.time is None:
        return SHORTEST
    device = launch.time.device_us
    return launch.time.wall_us if device is None else device


def _arguments(launch: KernelLaunch) -> dict[str, object]:
    values = {one.name: tensor_text(one.tensor) if one.tensor else scalar(one.value) for one in launch.args}
    digests = {one.name: one.after.bits for one in launch.args if one.after is not None}
    return {
        "launch": launch.index, "grid": list(launch.grid), "hash": launch.kernel.hash, "phase": launch.phase,
        "called at": str(launch.site) if launch.site else None, "arguments": values, "digests": digests,
    }  # fmt: skip


# ---- compilations


def _compilations(run: Run, process: int) -> Iterator[PerfettoEvent]:
    known = compilations(run)
    if not known:
        return
    yield _name("process_name", process, 0, f"{run.name} compiler")
    stages: dict[str, list[StageArtefact]] = {}
    for compilation, artefact in run.artefacts():
        stages.setdefault(compilation.hash, []).append(artefact)
    passes = {} if run.underived() else passes_by_hash(run)
    now = 0.0
    for one in known:
        name, began = label(known, one), now
        inner: list[PerfettoEvent] = []
        within = {artefact.stage: artefact.wall_ms * 1e3 for artefact in stages.get(one.hash, ())}
        for stage in dict.fromkeys([*within, *(record.stage for record in passes.get(one.hash, ()))]):
            start, first = now, len(inner)
            for record in passes.get(one.hash, ()):
                if record.stage == stage and record.wall_ms is not None:
                    changed = {"changed": record.changed, "index": record.index}
                    inner.append(_slice(record.name, process, 0, now, record.wall_ms * 1e3, **changed))
                    now += record.wall_ms * 1e3
            now = max(now, start + within.get(stage, 0.0))
            inner.insert(first, _slice(stage, process, 0, start, now - start))
        yield _slice(name, process, 0, began, max(now - began, SHORTEST), hash=one.hash, target=one.target)
        yield from inner
        now = max(now, began + SHORTEST)
