"""Whether a new recording of a run's program made the same launches, from the same contents."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tracing.analyze.runs.outcomes import ending
from tracing.model import CallSite, KernelLaunch, Selection
from tracing.model.steps import StepSelection
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class Repetition:
    """The first differences of a new recording; empty: none is known."""

    kernels: str = ""  # "launch 3 triton_poi_fused_sin_0 has other code"
    contents: str = ""  # "launch 3 triton_poi_fused_sin_0 read another in_ptr0"


def repetition(run: Run, anew: Run) -> Repetition:
    """Compare a new recording with the run that it repeats, call by call of each kernel.

    anew -- of the whole program; of `run` some launches may be missing, which then are not compared
    """
    calls: dict[str, deque[KernelLaunch]] = defaultdict(deque)
    for launch in anew.launches():
        calls[launch.kernel_name].append(launch)
    whole = run.info.selection == Selection() and run.info.steps == StepSelection()
    contents = ""
    for launch in run.launches():
        name = f"launch {launch.index} {launch.kernel_name}"
        if not calls[launch.kernel_name]:
            return Repetition(f"{name} is made no more")
        now = calls[launch.kernel_name].popleft()
        if _code(launch) != _code(now) and None not in (_code(launch), _code(now)):
            return Repetition(f"{name} has other code")
        if whole and not contents and (other := _other(launch, now)):
            contents = f"{name} read another {other}"
    added = next((one[0] for one in calls.values() if one), None)
    if whole and added is not None and not ending(run, 0):
        return Repetition(f"launch {added.index} {added.kernel_name} was added")
    return Repetition("", contents)


def changed_since(run: Run) -> str:
    """`; changed since: train.py`: the files of a run's program that were changed after the run began."""
    began = datetime.fromisoformat(run.info.started.replace("Z", "+00:00")).timestamp()
    files = {run.info.path, *(site.file for site in run.records(CallSite))}
    paths = [Path(run.info.folder, file) for file in files if file]
    # 1: the start is known to the second
    names = sorted(path.name for path in paths if path.is_file() and path.stat().st_mtime >= began + 1)
    return f"; changed since: {', '.join(names)}" if names else ""


def _code(launch: KernelLaunch) -> str | None:
    return launch.kernel.module


def _other(launch: KernelLaunch, now: KernelLaunch) -> str:
    # the first argument whose number or content is known to be another; "": none
    for before, after in zip(launch.args, now.args, strict=False):
        if before.addresses or after.addresses:
            continue
        numbers = before.tensor is None and repr(before.value) != repr(after.value)
        bits = [one.before.bits for one in (before, after) if one.reads and one.before is not None]
        if numbers or (len(bits) == 2 and bits[0] != bits[1]):
            return before.name
    return ""
