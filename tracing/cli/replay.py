"""The judge of `tracing bisect` without a command: a recorded launch again, on this machine's GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracing.analyze.again import kernel_file
from tracing.analyze.bisect import Judgement
from tracing.analyze.probes import Judge
from tracing.analyze.replay import ReplayJudge, Tolerance, device_name, replayable, values
from tracing.compiler.child import in_child
from tracing.errors import Problem
from tracing.model import Compilation, KeptTensor, KernelLaunch
from tracing.record.outputs import load
from tracing.record.reference import interpreted
from tracing.store import Run


def replay_judge(
    run: Run,
    chosen: Compilation,
    index: int | None,
    atol: float | None,
    rtol: float | None,
    seconds: float,
) -> Judge:
    """Compare what a launch of the kernel leaves with what Triton's interpreter makes of the same inputs.

    index -- of the launch; None: the first of the kernel

    Raises Problem where there is no GPU, no such launch, no kept input or no reference, and where one
    tolerance is given without the other.
    """
    if (atol is None) != (rtol is None):
        raise Problem(
            "--atol and --rtol belong together", "give both, or none for the defaults of each dtype"
        )
    device = in_child(device_name, 60)
    if device.failure:
        raise Problem(
            "without a command the kernel is launched again, and there is no GPU here",
            "judge by its artefacts: `tracing bisect RUN --kernel K -- COMMAND {ptx}`",
        )
    launch = _launch(run, chosen, index)
    replayable(launch)
    given = values(launch, _kept(run, launch))
    expected = interpreted(launch, kernel_file(run, launch), given)
    judge = ReplayJudge(launch, given, expected, Tolerance(atol, rtol), device.result)
    return _InChild(judge, seconds)


def _launch(run: Run, chosen: Compilation, index: int | None) -> KernelLaunch:
    found = [one for one in run.launches() if one.kernel.hash == chosen.hash and index in (None, one.index)]
    if not found:
        which = "no launch" if index is None else f"no launch {index}"
        what = f"{run.path} has {which} of {chosen.kernel_name}"
        raise Problem(what, f"`tracing show {run.path}` lists them")
    return found[0]


def _kept(run: Run, launch: KernelLaunch) -> dict[str, Any]:
    kept = [one for one in run.records(KeptTensor) if (one.launch, one.side) == (launch.index, "before")]
    if any(count > 1 for count in Counter(one.position for one in kept).values()):
        raise Problem(
            f"cannot be decided, because several processes of {run.path} have a launch {launch.index}",
            "record one process, or give `tracing bisect` a command that judges: `-- COMMAND`",
        )
    return {launch.args[one.position].name: load(run.bytes(one.blob)) for one in kept}


class _InChild:
    # a launch that faults makes CUDA unusable for its process

    def __init__(self, judge: ReplayJudge, seconds: float) -> None:
        self._judge, self._seconds = judge, seconds
        self.stages: Sequence[str] = judge.stages

    @property
    def key(self) -> Sequence[str]:
        return self._judge.key

    def __call__(self, folder: Path) -> Judgement:
        def judged() -> list[Any]:
            found = self._judge(folder)
            return [found.verdict, found.detail]

        ended = in_child(judged, self._seconds)
        if ended.failure:
            return Judgement("skip", f"the replay failed: {ended.failure}", final=not ended.timed_out)
        verdict, detail = ended.result
        return Judgement(verdict, detail)
