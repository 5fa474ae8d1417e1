"""Selected and deleted steps on a GPU, where digests arrive late and CUDA graphs execute their kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from handmade.records import INFO
from msgspec.structs import replace
from recorded.launches import add_kernel

import tracing
from tracing import store
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.model import KernelLaunch, Outcome, RecordingStop, StepSelection
from tracing.record.launches.launch_recorder import LaunchRecorder

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def added(x: torch.Tensor, y: torch.Tensor) -> None:
    add_kernel[(1,)](x, 64, y, 64)


def loop(
    runs: Path, steps: int, selection: StepSelection, one: Callable[[int, torch.Tensor, torch.Tensor], None]
) -> store.Run:
    x, y = torch.zeros(64, device="cuda"), torch.zeros(64, device="cuda")
    writer = store.create(runs, replace(INFO, steps=selection))
    with LaunchRecorder(writer, steps=selection):
        for step in range(steps):
            one(step, x, y)
            tracing.step()
    writer.append(Outcome("ended", "exit status 0"))
    writer.close()
    return store.Run(writer.path)


def twice(step: int, x: torch.Tensor, y: torch.Tensor) -> None:
    added(x, y)
    added(y, x)


class Graph:
    """The same two launches, in a CUDA graph that is captured in the second step."""

    def __init__(self) -> None:
        self.graph = torch.cuda.CUDAGraph()

    def __call__(self, step: int, x: torch.Tensor, y: torch.Tensor) -> None:
        if step == 0:
            twice(step, x, y)
        elif step == 1:
            with torch.cuda.graph(self.graph):
                twice(step, x, y)
        else:
            self.graph.replay()


def facts(launches: list[KernelLaunch]) -> dict[Any, Any]:
    return {
        one.index: (one.step, [(arg.name, arg.before, arg.after) for arg in one.args]) for one in launches
    }


@pytest.mark.parametrize("form", [lambda: twice, Graph])
@pytest.mark.parametrize("selection", [StepSelection(last=6), StepSelection(every=5, start=3)])
def test_the_recorded_steps_are_those_of_a_complete_run(
    tmp_path: Path, form: Callable[[], Any], selection: StepSelection
) -> None:
    whole = facts(list(loop(tmp_path / "whole", 40, StepSelection(), form()).launches()))
    run = loop(tmp_path / "part", 40, selection, form())

    part = facts(list(run.launches()))
    assert part and all(whole[index] == one for index, one in part.items())
    steps = sorted({one[0][0] for one in part.values()})
    expected = list(range(3, 40, 5)) if selection.every == 5 else list(range(steps[0], 40))
    assert steps == expected and len(part) == 2 * len(steps)


def test_two_such_runs_are_compared_by_step(tmp_path: Path) -> None:
    a = loop(tmp_path / "a", 40, StepSelection(last=6), twice)
    b = loop(tmp_path / "b", 40, StepSelection(last=20), twice)

    verdict = ComparisonVerdict.of(a, b, 100)
    assert not list(verdict) and verdict.status == 2 and verdict.comparison.notes.pairs >= 12


@pytest.mark.parametrize("form", [lambda: twice, Graph])
def test_the_step_of_the_first_nan_is_kept(tmp_path: Path, form: Callable[[], Any]) -> None:
    step_of = form()

    def one(step: int, x: torch.Tensor, y: torch.Tensor) -> None:
        if step == 30:
            x[3] = float("nan")
        step_of(step, x, y)

    run = loop(tmp_path, 60, StepSelection(last=4, until="nan"), one)

    (stop,) = run.records(RecordingStop)
    # two launches in step 0, none in the capture of step 1
    first = 2 * 30 if step_of is twice else 2 * 29
    assert f"launch #{first} add read a NaN in x_ptr, in step 30" == stop.reason
    assert stop.step in (30, 31)
    steps = {one.step[0] for one in run.launches() if one.step}
    assert 30 in steps and max(steps) == stop.step and len(steps) >= 4
