"""Which kernels were compiled and not launched, and why a run has no launch of a Triton kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from tracing.model import (
    Compilation,
    Failure,
    FrameCompile,
    Kernel,
    LaunchLine,
    NotCovered,
    OperatorSignature,
    Record,
)
from tracing.store import Run, rank_of

R = TypeVar("R", bound=Record)
_SHOWN = 4  # names in one sentence


class _Launch(Record, frozen=True):
    # what is needed of a LaunchLine
    signature: int


def unlaunched(run: Run) -> list[Compilation]:
    """The compilations that no recorded launch used; each hash is listed once."""
    launched = {one.hash for one in run.records(Kernel)}
    first = {one.hash: one for one in run.records(Compilation) if one.hash not in launched}
    return list(first.values())


def reasons_for_no_kernel(run: Run, rank: int | None = None) -> list[str]:
    """Why a run has no launch of a Triton kernel, a sentence each; empty if it has one.

    rank -- of this rank's launches only, while other ranks may still run; None: of all ranks'

    Empty also for a run that leaves out launches by number, phase, rank or step.
    """
    selection = run.info.selection
    if selection.launches or selection.phases or selection.ranks or run.info.steps.partial:
        return []
    recorded = _Recorded(run, rank)
    kernels = recorded.kernels()
    if any(one.kind != "cpp" for one in kernels):
        return []
    reasons = [
        *_left_out(recorded),
        *([f"Inductor compiled C++, {_some([one.name for one in kernels])}"] if kernels else []),
        *_frames(recorded),
        *_libraries(recorded),
        *(one.sentence for one in recorded.records(Failure)),
        *(
            f"not covered, and may have launched one: {one.what}"
            for one in recorded.records(NotCovered)
            if one.setting
        ),
    ]
    return list(dict.fromkeys(reasons))  # ranks mostly have the same ones


def launched_kernels(run: Run) -> list[Kernel]:
    """The kernels of recorded launches: the options can leave out a launch, and not its kernel."""
    return _Recorded(run).kernels()


@dataclass(frozen=True, slots=True)
class _Recorded:
    # what one rank recorded in a run; None: what all did
    run: Run
    rank: int | None = None

    def records(self, kind: type[R]) -> Iterator[R]:
        for process in self._processes(kind):
            yield from self.run.view(process, kind, kind)

    def kernels(self) -> list[Kernel]:
        # those that were launched
        kernels: dict[str, Kernel] = {}
        for process in self._processes(LaunchLine):
            known = self.run.signatures(process)
            numbers = {one.signature for one in self.run.view(process, LaunchLine, _Launch)}
            for number in numbers & known.keys():
                kernels[known[number][0].hash] = known[number][0]
        return list(kernels.values())

    def _processes(self, kind: type[Record]) -> list[str]:
        return [one for one in self.run.processes(kind) if self.rank in (None, rank_of(one))]


def _left_out(recorded: _Recorded) -> Iterator[str]:
    # by the options of the recording
    names = sorted({one.kernel_name for one in recorded.records(Compilation)})
    for wanted in recorded.run.info.selection.kernels:
        near = get_close_matches(wanted, names, n=3, cutoff=0.5) or names[:_SHOWN]
        compiled = f"the nearest compiled kernels are {', '.join(near)}" if near else "no kernel was compiled"
        yield f"`--kernel {wanted}` matches none; {compiled}"


def _frames(recorded: _Recorded) -> Iterator[str]:
    frames = list(recorded.records(FrameCompile))
    if not frames and recorded.run.info.kind == "case":
        yield "torch.compile compiled none of its code: it is disabled there, or no tensor is computed"
    breaks = [(frame, one) for frame in frames for one in frame.breaks if not frame.raised]
    for at, reason in dict.fromkeys(
        (one.python, _first(one.reason)) for frame, one in breaks if one.python or one.reason != frame.eager
    ):
        yield f"a graph break{f' at {at}' if at else ''}: {reason}"
    for frame in frames:
        if frame.raised:
            at = next((f" at {one.python}" for one in frame.breaks if one.python), "")
            yield f"the compile of {frame.function} ({frame.python}) failed{at}: {_first(frame.eager)}"
        elif frame.eager:
            yield f"{frame.function} ({frame.python}) stays in eager: {_first(frame.eager)}"
    if frames and not breaks and not any(frame.operators or frame.raised for frame in frames):
        yield "the graphs that torch.compile made compute nothing"


def _libraries(recorded: _Recorded) -> Iterator[str]:
    raised = any(one.raised for one in recorded.records(FrameCompile))
    if raised or any(recorded.records(Failure)):  # that is the reason
        return
    names = [one.name for one in recorded.records(OperatorSignature) if not one.allocates]
    if names:
        yield f"operators that are calls of a library or fall back to ATen: {_some(names)}"


def _some(names: list[str]) -> str:
    known = list(dict.fromkeys(names))
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return ", ".join(known[:_SHOWN]) + more


def _first(text: str) -> str:
    # with the following lines while it ends with a colon: "backend='inductor' raised:"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    count = next((n for n, line in enumerate(lines, 1) if not line.endswith(":")), len(lines))
    return " ".join(lines[:count]) or "no reason is known"
