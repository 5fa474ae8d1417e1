"""Which kernels were compiled and not launched, and why a run has no launch of a Triton kernel."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from tracing.model import (
    Compilation,
    FrameCompile,
    Kernel,
    LaunchLine,
    NotCovered,
    OperatorSignature,
    Record,
)
from tracing.store import Run

_SHOWN = 4  # names in one sentence


class _Launch(Record, frozen=True):
    # what is needed of a LaunchLine
    signature: int


def unlaunched(run: Run) -> list[Compilation]:
    """The compilations that no recorded launch used; each hash is listed once."""
    launched = {one.hash for one in run.records(Kernel)}
    first = {one.hash: one for one in run.records(Compilation) if one.hash not in launched}
    return list(first.values())


def reasons_for_no_kernel(run: Run) -> list[str]:
    """Why a run has no launch of a Triton kernel, a sentence each; empty if it has one.

    Empty also for a job of several ranks, and for a run that leaves out launches by number, phase, rank or
    step.
    """
    selection = run.info.selection
    if selection.launches or selection.phases or selection.ranks or run.info.world_size > 1:
        return []
    if run.info.steps.partial:
        return []
    kernels = launched_kernels(run)
    if any(one.kind != "cpp" for one in kernels):
        return []
    return [
        *_left_out(run),
        *([f"Inductor compiled C++, {_some([one.name for one in kernels])}"] if kernels else []),
        *_frames(run),
        *_libraries(run),
        *(f"{one.what}: to cover it: {one.setting}" for one in run.records(NotCovered) if one.setting),
    ]


def launched_kernels(run: Run) -> list[Kernel]:
    """The kernels of recorded launches: the options can leave out a launch, and not its kernel."""
    kernels: dict[str, Kernel] = {}
    for process in run.processes():
        known = run.signatures(process)
        for number in {one.signature for one in run.view(process, LaunchLine, _Launch)} & known.keys():
            kernels[known[number][0].hash] = known[number][0]
    return list(kernels.values())


def _left_out(run: Run) -> Iterator[str]:
    # by the options of the recording
    names = sorted({one.kernel_name for one in run.records(Compilation)})
    for wanted in run.info.selection.kernels:
        near = get_close_matches(wanted, names, n=3, cutoff=0.5) or names[:_SHOWN]
        compiled = f"the nearest compiled kernels are {', '.join(near)}" if near else "no kernel was compiled"
        yield f"`--kernel {wanted}` matches none; {compiled}"


def _frames(run: Run) -> Iterator[str]:
    frames = list(run.records(FrameCompile))
    if not frames and run.info.kind == "case":
        yield "torch.compile compiled none of its code: it is disabled there, or no tensor is computed"
    breaks = [(frame, one) for frame in frames for one in frame.breaks]
    for at, reason in dict.fromkeys(
        (one.python, _first(one.reason)) for frame, one in breaks if one.python or one.reason != frame.eager
    ):
        yield f"a graph break{f' at {at}' if at else ''}: {reason}"
    for frame in frames:
        if frame.eager:
            yield f"{frame.function} ({frame.python}) stays in eager: {_first(frame.eager)}"
    if frames and not breaks and not any(frame.operators for frame in frames):
        yield "the graphs that torch.compile made compute nothing"


def _libraries(run: Run) -> Iterator[str]:
    names = [one.name for one in run.records(OperatorSignature) if not one.allocates]
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
