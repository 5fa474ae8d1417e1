"""`tracing compare --replay`: the accused kernel alone, on its recorded inputs, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import Any

import msgspec

from tracing import environment, store
from tracing.analyze.again import Again, again, find_launch
from tracing.analyze.alone import Alone, same_arguments, suspect
from tracing.analyze.compare.divergence import Divergence
from tracing.analyze.compare.evidence import float_atomics
from tracing.analyze.recording import command, not_recorded, recording, variables
from tracing.cli.app import err
from tracing.compiler.child import in_child
from tracing.errors import Problem
from tracing.model import KernelLaunch
from tracing.report.alone import alone_text, payload_text

_SECONDS = 600.0  # that all replays may take


@dataclass(frozen=True, slots=True)
class Replaying:
    """How the kernel is replayed."""

    times: int
    fpsan: bool
    runs: Path  # where a launch is recorded again whose inputs were not kept


def replay_text(found: Divergence, runs: tuple[store.Run, store.Run], how: Replaying) -> Iterator[str]:
    """What replays of the launch that a divergence accuses say, or why there can be none; lines of text."""
    try:
        yield from _replayed(found, runs, how)
    except Problem as problem:
        yield f"not replayed: {problem.problem}"
        if problem.remedy:
            yield f"  {problem.remedy}"


def _replayed(found: Divergence, runs: tuple[store.Run, store.Run], how: Replaying) -> Iterator[str]:
    accused = suspect(found)
    process, launch = find_launch(runs[0], accused.index, found.rank)
    run, made = runs[0], again(runs[0], process, launch)
    if made.missing:
        run, made = _recorded_again(runs[0], launch, found.rank, how)
        yield from _other_inputs(launch, made.launch, run)
    other = None
    if accused.other is not None:
        other = _of_other(runs[1], accused.other, found.rank, made)
    with err.status(f"replaying launch #{launch.index} {launch.kernel_name}"):
        seen = _in_child(run, made, other, how.times, fpsan=False)
    yield from alone_text(seen, launch, _recorded(found, launch))
    if how.fpsan:
        if count := float_atomics(runs[0], launch):
            raise Problem(
                f"FpSan leaves the {count} atomic additions of floats as they are: they would round"
            )
        with err.status("replaying under FpSan"):
            seen = _in_child(run, made, other, how.times, fpsan=True)
        yield from payload_text(seen)


def _of_other(run: store.Run, index: int, rank: int, given: Again) -> Again:
    made = again(run, *find_launch(run, index, rank))
    if not same_arguments(given.facts["tensors"], made.facts["tensors"]):
        raise Problem(
            "the kernel takes other tensors in the other run, so it cannot be given the same inputs"
        )
    return made


def _recorded(found: Divergence, launch: KernelLaunch) -> dict[str, Mapping[str, str]]:
    # what the replayed launch left in both runs
    told = {"a": launch, "b": found.other if found.kind == "output" else None}
    return {
        name: {arg.name: arg.after.bits for arg in one.args if arg.after and (arg.writes or arg.modified)}
        for name, one in told.items()
        if one is not None
    }


def _in_child(run: store.Run, made: Again, other: Again | None, times: int, *, fpsan: bool) -> Alone:
    def call() -> dict[str, Any]:
        environment.use_inductors_ptxas()
        from tracing.record.alone import Side, replayed
        from tracing.record.fpsan import instrumented, require_fpsan

        contents = {name: run.bytes(blob) for name, blob in made.inputs.items()}
        sides = [
            Side(one.module, one.facts, contents, _outputs(one.launch))
            for one in (made, other)
            if one is not None
        ]
        if fpsan:
            require_fpsan()
        with environment.fresh_caches(), instrumented() if fpsan else nullcontext():
            return replayed(sides, times)

    ended = in_child(call, _SECONDS)
    if ended.failure:
        raise Problem(ended.failure, f"try fewer than {times}: `--times`" if ended.timed_out else "")
    return msgspec.convert(ended.result, Alone)


def _outputs(launch: KernelLaunch) -> list[str]:
    return [arg.name for arg in launch.args if arg.writes or arg.modified]


# ---- a launch whose inputs were not kept


def _recorded_again(
    run: store.Run, launch: KernelLaunch, rank: int, how: Replaying
) -> tuple[store.Run, Again]:
    one = f"{launch.index}:{launch.index + 1}"
    options = ("--launches", one, "--keep-inputs", "--no-passes", "--runs", str(how.runs))
    typed = f"record it with `{join(recording(run, *options))}`"
    if lacking := not_recorded(run):
        typed += f", with {', '.join(lacking)} set as then: the run does not have their values"
    why = f"the inputs of launch {launch.index} were not kept"
    if rank or len(run.processes()) > 1:
        raise Problem(f"{why}, and the run is of several processes", typed)
    with err.status(f"{why}: recording it again"):
        words = [sys.executable, "-m", *command(run.info, *options)]
        own = environment.with_variables(variables(run))
        done = subprocess.run(words, capture_output=True, text=True, env=own, check=False)
    lines = done.stdout.splitlines()
    if done.returncode == 2 or not lines:
        last = next(iter(done.stderr.strip().splitlines()[-1:]), f"exit status {done.returncode}")
        raise Problem(f"{why}, and recording it again failed: {last.strip()}", typed)
    recorded = store.Run(Path(lines[-1]))
    process, found = find_launch(recorded, launch.index)
    if (found.kernel_name, found.grid) != (launch.kernel_name, launch.grid):
        what = f"{found.kernel_name} with grid {found.grid}"
        raise Problem(f"{why}, and recorded again, launch {launch.index} is {what}", typed)
    made = again(recorded, process, found)
    if made.missing:
        raise Problem(f"{why}, nor when it was recorded again: {', '.join(made.missing)}", typed)
    return recorded, made


def _other_inputs(launch: KernelLaunch, found: KernelLaunch, run: store.Run) -> Iterator[str]:
    pairs = zip(launch.args, found.args, strict=False)
    other = [a.name for a, b in pairs if a.reads and a.before and b.before and a.before.bits != b.before.bits]
    yield f"its inputs were not kept; launch {launch.index} was recorded again, into {run.path}"
    if other:
        yield f"  where {', '.join(other)} held other bits than in a"
