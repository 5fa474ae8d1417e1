"""Find a recorded launch in a new recording of its case, which keeps the contents of its inputs.

A launch of the same kernel, grid and arguments that reads the same bits is the same launch. If no launch
does, the same call of the kernel is chosen, counted from the start of the program. The index of a launch
proves nothing: one additional launch shifts all later ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tracing.analyze.runs.repetition import changed_since
from tracing.errors import Problem
from tracing.model import KernelLaunch
from tracing.store import Run
from tracing.store.recorded_launch import RecordedLaunch, call_order, recorded_launch


class Recorder(Protocol):
    """Runs the case of a launch once more."""

    def inputs(self, index: int) -> Run:
        """Record launch `index`, and keep its inputs."""

    def calls(self, kernel: str) -> Run:
        """Record the launches of a kernel."""


@dataclass(frozen=True, slots=True)
class NewRecording:
    """A launch in a new recording, with the contents of its inputs."""

    launch: RecordedLaunch
    other_inputs: tuple[str, ...]  # arguments whose contents differ from the recorded run
    unknown_inputs: tuple[str, ...]  # those of which the recorded run has no digest


def launch_recorded_anew(recorded: RecordedLaunch, recorder: Recorder) -> NewRecording:
    """Record a launch once more.

    Cost: one run of the case; three if the launch has another number by now.

    Raises Problem if the launch does not recur, or if that cannot be decided.
    """
    same = _recorded(recorded, recorder, recorded.launch.index)
    if same is not None and not _different(recorded, same):
        anew = _compared(recorded, same)
        if not anew.other_inputs and not anew.unknown_inputs:
            return anew
    index = _index_by_now(recorded, recorder)
    if same is None or index != recorded.launch.index:
        same = _recorded(recorded, recorder, index)
    if same is None:
        raise _problem(recorded, "and the launches of its kernel have other numbers each time")
    if different := _different(recorded, same):
        has = " and ".join(different)
        same_call = f"and launch {index}, the same call of its kernel, has {has}"
        raise _problem(recorded, f"{same_call}{changed_since(recorded.run)}")
    return _compared(recorded, same)


def _recorded(recorded: RecordedLaunch, recorder: Recorder, index: int) -> RecordedLaunch | None:
    # None: the launch of this number is now of another kernel
    run = recorder.inputs(index)
    try:
        anew = recorded_launch(run, index, kernel=recorded.launch.kernel_name)
    except Problem:
        return None
    if anew.missing:
        raise _problem(recorded, f"nor when it was recorded anew: {', '.join(anew.missing)}")
    return anew


def _index_by_now(recorded: RecordedLaunch, recorder: Recorder) -> int:
    launch, calls = recorded.launch, list(recorder.calls(recorded.launch.kernel_name).launches())
    alike = [one.index for one in calls if one.grid == launch.grid and _reads_same(recorded, one)]
    order = call_order(recorded.run, recorded.process, launch)
    if alike:
        by_order = calls[order].index if order is not None and order < len(calls) else None
        return by_order if by_order in alike else alike[0]
    if order is None:
        raise _problem(recorded, "and which call of its kernel it was is not known: the run is a part of one")
    if order >= len(calls):
        count = f"{len(calls)} time{'s' * (len(calls) != 1)}"
        made = f"launched its kernel {count}, and this is call {order}, from 0"
        raise _problem(recorded, f"and its program, run anew, {made}{changed_since(recorded.run)}")
    return calls[order].index


def _reads_same(recorded: RecordedLaunch, launch: KernelLaunch) -> bool:
    bits = {arg.name: arg.before.bits for arg in launch.args if arg.reads and arg.before}
    return bool(bits) and bits == recorded.read


def _different(a: RecordedLaunch, b: RecordedLaunch) -> list[str]:
    # the facts that distinguish two launches except for the contents of inputs
    facts, others = _facts(a), _facts(b)
    return [what for what in facts if facts[what] != others[what]]


def _facts(recorded: RecordedLaunch) -> dict[str, object]:
    launch, kernel = recorded.launch, recorded.launch.kernel
    source = recorded.run.text(kernel.module) if kernel.module else ""
    layouts = {name: arg.tensor for name, arg in recorded.tensors.items()}
    return {
        "other code": (source, kernel.constants, kernel.num_warps, kernel.num_stages, kernel.num_ctas),
        "another grid": launch.grid,
        "other numbers": repr(recorded.values),
        "other tensors": {name: one and (one.shape, one.stride, one.dtype) for name, one in layouts.items()},
    }


def _compared(recorded: RecordedLaunch, anew: RecordedLaunch) -> NewRecording:
    unknown = tuple(name for name in recorded.missing if name not in recorded.read)
    known = (name for name in recorded.missing if name in recorded.read)
    other = tuple(name for name in known if recorded.read[name] != anew.read.get(name))
    return NewRecording(anew, other, unknown)


def _problem(recorded: RecordedLaunch, why: str) -> Problem:
    return Problem(f"the inputs of launch {recorded.launch.index} were not kept, {why}")
