"""Whether a new recording of a run's program made the same launches, from the same contents."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tracing.analyze.runs.outcomes import ending
from tracing.model import Access, CallSite, KernelLaunch, Outcome, Selection
from tracing.model.steps import StepSelection
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class Repetition:
    """The first differences of a new recording; empty: none is known."""

    kernels: str = ""  # "launch 3 triton_poi_fused_sin_0 has other code"
    contents: str = ""  # "launch 3 triton_poi_fused_sin_0 read another in_ptr0"
    ended: str = ""  # how the new recording ended early, if it lacks the launch


def repetition(run: Run, anew: Run) -> Repetition:
    """Compare a new recording with the run that it repeats, call by call of each kernel.

    anew -- of the whole program; of `run` some launches may be missing: then launches of one number are
            compared, and those that are missing are not
    """
    whole = run.info.selection == Selection() and run.info.steps == StepSelection()
    return _of_whole(run, anew) if whole else _of_part(run, anew)


def _of_part(run: Run, anew: Run) -> Repetition:
    now = {call.position: call for call in _calls(anew)}
    for call in _calls(run):
        kernel, other = call.launch.kernel, now.get(call.position)
        name = f"launch {call.launch.index} {kernel.name}"
        if other is None or other.launch.kernel.name != kernel.name:
            return Repetition(f"{name} is made no more at this position", ended=ending(anew, 0))
        if len({kernel.module, other.launch.kernel.module} - {None}) > 1:
            return Repetition(f"{name} has other code")
        if argument := call.other(other):
            return Repetition("", f"{name} read another {argument}")
    return Repetition()


def _of_whole(run: Run, anew: Run) -> Repetition:
    calls: dict[str, deque[_Call]] = defaultdict(deque)
    for call in _calls(anew):
        calls[call.launch.kernel_name].append(call)
    contents = ""
    for call in _calls(run):
        kernel = call.launch.kernel
        name = f"launch {call.launch.index} {kernel.name}"
        if not calls[kernel.name]:
            return Repetition(f"{name} is made no more", ended=ending(anew, 0))
        now = calls[kernel.name].popleft()
        codes = {kernel.module, now.launch.kernel.module}
        if len(codes) > 1 and None not in codes:
            return Repetition(f"{name} has other code")
        if not contents and (other := call.other(now)):
            contents = f"{name} read another {other}"
    added = next((one[0].launch for one in calls.values() if one), None)
    if added is not None and not ending(run, 0):
        return Repetition(f"launch {added.index} {added.kernel_name} was added")
    return Repetition("", contents)


def other_results(run: Run, anew: Run) -> str:
    """How results that differ from eager's agree with them in a new recording; empty: they do not, or did.

    anew -- made the same launches, which read the same contents, so far as that is known

    "launch 3 scale wrote another y_ptr, and the results of the run differ from eager's": it wrote what
    depends on more than its arguments, as on what a load without `other` leaves out.
    """
    if "differs" in _statuses(anew) or "differs" not in _statuses(run):
        return ""
    results = "the results of the run differ from eager's"
    calls: dict[str, deque[_Call]] = defaultdict(deque)
    for call in _calls(anew):
        calls[call.launch.kernel_name].append(call)
    for call in _calls(run):
        name, now = call.launch.kernel_name, calls[call.launch.kernel_name]
        if now and (other := call.wrote_other(now.popleft())):
            return f"launch {call.launch.index} {name} wrote another {other}, and {results}"
    return f"results agree with eager's, and {results}"


def _statuses(run: Run) -> set[str]:
    return {one.status for one in run.records(Outcome)}


def changed_since(run: Run) -> str:
    """`; changed since: train.py`: the files of a run's program that were changed after the run began."""
    began = datetime.fromisoformat(run.info.started.replace("Z", "+00:00")).timestamp()
    files = {run.info.path, *(site.file for site in run.records(CallSite))}
    paths = [Path(run.info.folder, file) for file in files if file]
    # 1: the start is known to the second
    names = sorted(path.name for path in paths if path.is_file() and path.stat().st_mtime >= began + 1)
    return f"; changed since: {', '.join(names)}" if names else ""


@dataclass(frozen=True, slots=True)
class _Call:
    launch: KernelLaunch
    access: Access | None  # None: the interpreter did not observe it
    process: int  # from 0

    @property
    def position(self) -> tuple[int, int]:
        """Its process and its number there, which launches keep although others are not in the run."""
        return self.process, self.launch.index

    def other(self, now: _Call) -> str:
        """The first argument with another number, or of which another content was read; "": none is known."""
        for position, (one, other) in enumerate(zip(self.launch.args, now.launch.args, strict=False)):
            if one.addresses or other.addresses:
                continue
            bits = {call.bits(position) for call in (self, now)}
            if (one.tensor is None and repr(one.value) != repr(other.value)) or len(bits - {None}) > 1:
                return one.name
        return ""

    def wrote_other(self, now: _Call) -> str:
        """The first argument to which another content was written; "": none is known."""
        if self.access is None or now.access is None:
            return ""
        written, now_written = self.access.written, now.access.written
        other = [one for one, bits in written.items() if now_written.get(one, bits) != bits]
        return self.launch.args[min(other)].name if other else ""

    def bits(self, position: int) -> str | None:
        # of what the launch read of an argument, else of an argument that it may read; None: not known
        if self.access is not None:
            return self.access.read.get(position)
        argument = self.launch.args[position]
        read = argument.before if argument.declared in ("in", "in_out") else None
        return read.bits if read is not None else None


def _calls(run: Run) -> Iterator[_Call]:
    for number, process in enumerate(run.processes()):
        accesses = {one.launch: one for one in run.view(process, Access, Access)}
        joiner = run.joiner(process)
        for row in run.rows(process):
            launch = joiner.launch(row)
            yield _Call(launch, accesses.get(launch.index), number)
