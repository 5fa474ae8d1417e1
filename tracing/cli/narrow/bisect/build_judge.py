"""The judge of `tracing bisect` without a command: replays a recorded launch on this machine's GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tracing import store
from tracing.analyze.bisect.judge import artefact
from tracing.analyze.bisect.probes import Judge
from tracing.analyze.bisect.search import Judgement
from tracing.cli.narrow.bisect.by_artefacts import by_artefacts
from tracing.compiler.child import in_child
from tracing.errors import Problem
from tracing.model import Compilation
from tracing.replay.build_replay import (
    BuildReplay,
    Tolerance,
    device_name,
    require_inputs,
    require_launchable,
)
from tracing.replay.cuda_binary import CudaBinary
from tracing.replay.reference import reference
from tracing.store.recorded_launch import RecordedLaunch, recorded_launch

_ELSE = "give `tracing bisect` a command that judges: `-- COMMAND`"


def replay_judge(
    run: store.Run,
    chosen: Compilation,
    index: int | None,
    atol: float | None,
    rtol: float | None,
    seconds: float,
) -> Judge:
    """A judge that compares the results of a launch with those of Triton's interpreter on the same inputs.

    index -- of the launch; None: the first of the kernel

    Raises Problem if there is no GPU, no such launch, no kept input or no reference, and if only one
    tolerance is given.
    """
    if (atol is None) != (rtol is None):
        raise Problem(
            "--atol and --rtol belong together", "give both, or none for the defaults of each dtype"
        )
    device = in_child(device_name, 60)
    if device.failure or not device.result:
        why = f"it cannot be opened: {device.failure}" if device.failure else "there is no GPU"
        raise Problem(
            f"without COMMAND the kernel is launched on a GPU, and {why}",
            f"judge by its artefacts: {by_artefacts(run, chosen)}",
        )
    recorded = _recorded(run, chosen, index)
    require_launchable(recorded.launch)
    require_inputs(recorded)
    replay = BuildReplay(recorded, _expected(recorded), Tolerance(atol, rtol), device.result)
    return _ReplayJudge(replay, seconds)


def _expected(recorded: RecordedLaunch) -> Mapping[str, Any]:
    try:
        return reference(recorded)
    except Problem as error:
        what = f"cannot be decided, because there is no reference for launch {recorded.launch.index}"
        remedy = f"{error.remedy}; or {_ELSE}" if error.remedy else _ELSE
        raise Problem(f"{what}: {error.problem}", remedy) from None


def _recorded(run: store.Run, chosen: Compilation, index: int | None) -> RecordedLaunch:
    mine = [
        one.index for one in run.launches() if one.kernel.hash == chosen.hash and index in (None, one.index)
    ]
    if not mine:
        which = "no launch" if index is None else f"no launch {index}"
        what = f"{run.path} has {which} of {chosen.kernel_name}"
        raise Problem(what, f"`tracing show {run.path}` lists them")
    return recorded_launch(run, mine[0], kernel=chosen.hash)


class _ReplayJudge:
    # a launch that faults makes CUDA unusable for its process

    stages: Sequence[str] = ("ptx", "cubin")

    def __init__(self, replay: BuildReplay, seconds: float) -> None:
        self._replay, self._seconds = replay, seconds

    @property
    def key(self) -> Sequence[str]:
        return self._replay.key

    def __call__(self, folder: Path) -> Judgement:
        def judged() -> list[Any]:
            return list(self._replay.judged(_build(folder)))

        ended = in_child(judged, self._seconds)
        if ended.failure:
            return Judgement("skip", f"the replay failed: {ended.failure}", final=not ended.timed_out)
        verdict, detail = ended.result
        return Judgement(verdict, detail)


def _build(folder: Path) -> CudaBinary:
    shared = artefact(folder, "shared")
    return CudaBinary(
        artefact(folder, "ptx").read_text(),
        artefact(folder, "cubin").read_bytes(),
        int(shared.read_text()) if shared.exists() else 0,
    )
