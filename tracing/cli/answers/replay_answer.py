"""Replay launches in a process of their own, and report the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tracing import environment
from tracing.analyze.compare.evidence import float_atomics
from tracing.analyze.replay.new_recording import NewRecording
from tracing.analyze.replay.replay_plan import other_inputs, planned
from tracing.analyze.replay.replay_verdict import ReplayVerdict, Reproduced, verdict
from tracing.analyze.runs.recording_commands import is_virtual
from tracing.cli.app import spinner
from tracing.cli.processes.new_recording import record_anew
from tracing.compiler.child import in_child
from tracing.environment import installed_tools
from tracing.errors import Problem
from tracing.model import Digest, ReplayResult, Side
from tracing.store.recorded_launch import RecordedLaunch

_SECONDS = 600.0  # that all replays may take


@dataclass(frozen=True, slots=True)
class Replaying:
    """The settings of a replay."""

    times: int
    fpsan: bool
    runs: Path  # folder in which a launch whose inputs were not kept is recorded anew


@dataclass(frozen=True, slots=True)
class ReplayAnswer:
    """The results of replays, and the verdict."""

    launches: Mapping[Side, RecordedLaunch]
    recorded: Mapping[Side, Mapping[str, Digest]]  # recorded outputs of the launch in each run, by argument
    notes: tuple[str, ...]  # of recording inputs anew
    result: ReplayResult
    verdict: ReplayVerdict
    payloads: ReplayResult | None  # under FpSan


def answered(launches: Mapping[Side, RecordedLaunch], first: Side, how: Replaying) -> ReplayAnswer:
    """Execute a launch of one run, or the same call of two, and compare the results.

    first -- the accused run: its launch is executed first, on its inputs

    Raises Problem for inputs that are not available, and for launches that fail or time out.
    """
    different = other_inputs(launches["a"], launches["b"]) if len(launches) == 2 else ()
    order = sorted(launches, key=lambda side: side != first)
    given: dict[Side, RecordedLaunch] = {}
    notes: list[str] = []
    changed: list[str] = []
    for side in order if different else order[:1]:
        alike = [launches[side]] if different else [launches[one] for one in order]
        if kept := next((one for one in alike if not one.missing), None):
            given[side] = kept
            continue
        anew = record_anew(launches[side], how.runs)
        given[side] = anew.launch
        notes += _notes(launches[side], anew)
        changed += anew.other_inputs
    result = _replayed(launches, given, first, how.times, fpsan=False)
    notes += _elsewhere(launches, result)
    payloads = _payloads(launches, given, first, how.times) if how.fpsan else None
    recorded = {side: one.expected for side, one in launches.items()}
    decided = verdict(result, recorded, different, changed)
    if changed and isinstance(decided, Reproduced):
        notes.append(f"when recorded anew, {', '.join(changed)} held other contents, without effect")
    return ReplayAnswer(launches, recorded, tuple(notes), result, decided, payloads)


def _elsewhere(launches: Mapping[Side, RecordedLaunch], result: ReplayResult) -> Iterator[str]:
    for one in launches.values():
        environment = one.run.info.environment
        where = "" if is_virtual(environment) else environment.device
        if where != result.device:
            yield f"{one.run.path} was recorded on {environment.device}: bits may differ here"


def _notes(launch: RecordedLaunch, anew: NewRecording) -> list[str]:
    numbers = launch.launch.index, anew.launch.launch.index
    became = f", where it is launch {numbers[1]}" if numbers[0] != numbers[1] else ""
    where = f"into {anew.launch.run.path}"
    notes = [f"its inputs were not kept; launch {numbers[0]} was recorded anew{became}, {where}"]
    if not launch.launch.finished:
        notes.append(f"launch {numbers[0]} did not finish in {launch.run.path}")
    if anew.unknown_inputs:
        names = ", ".join(anew.unknown_inputs)
        notes.append(f"whether {names} held these contents then is not known: there are no digests of it")
    return notes


def _payloads(
    launches: Mapping[Side, RecordedLaunch], given: Mapping[Side, RecordedLaunch], first: Side, times: int
) -> ReplayResult:
    one = launches[first]
    if count := float_atomics(one.run, one.launch):
        raise Problem(f"FpSan leaves the {count} atomic additions of floats uninstrumented: they round")
    return _replayed(launches, given, first, times, fpsan=True)


def _replayed(
    launches: Mapping[Side, RecordedLaunch],
    given: Mapping[Side, RecordedLaunch],
    first: Side,
    times: int,
    *,
    fpsan: bool,
) -> ReplayResult:
    def call() -> dict[str, Any]:
        installed_tools.use_inductors_ptxas()
        from tracing.replay.fpsan import instrumented, require_fpsan
        from tracing.replay.kernel_replay import ReplayRequest, replay

        pairs = planned(launches, given, first)
        asked = [ReplayRequest(one, launches[one], inputs, given[inputs]) for one, inputs in pairs]
        outputs = list(dict.fromkeys(name for one in launches.values() for name in one.outputs))
        if fpsan:
            require_fpsan()
        with environment.fresh_caches(), instrumented() if fpsan else nullcontext():
            result: dict[str, Any] = msgspec.to_builtins(replay(asked, outputs, times))
            return result

    one = launches[first].launch
    with spinner(f"replaying launch #{one.index} {one.kernel_name}{' under FpSan' if fpsan else ''}"):
        ended = in_child(call, _SECONDS)
    if ended.failure:
        raise Problem(ended.failure, f"try fewer than {times}: `--times`" if ended.timed_out else "")
    return msgspec.convert(ended.result, ReplayResult)
