"""On a GPU: a run is the same whether known launches are recorded by C++ or by Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from handmade.records import INFO
from msgspec.structs import replace
from torch import nn

import tracing
from tracing import store
from tracing.launch import compiled_launches
from tracing.model import KernelLaunch, LaunchTime, RecordingStop, Selection, StepSelection
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.launches.selection import EVERYTHING

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
STEPS = 30


def training_step() -> Callable[[], None]:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(65, 65), nn.GELU(), nn.LayerNorm(65)) for _ in range(4)]
    model = nn.Sequential(*layers).cuda()
    compiled, x = torch.compile(model), torch.randn(128, 65, device="cuda")

    def step() -> None:
        compiled(x).square().mean().backward()
        model.zero_grad(set_to_none=True)

    return step


def recorded(
    step: Callable[[], None],
    runs: Path,
    digests: Literal["all", "none"],
    steps: StepSelection,
    selection: Selection = EVERYTHING,
) -> list[Any]:
    step()
    writer = store.create(runs, replace(INFO, steps=steps))
    with LaunchRecorder(writer, digests, operators="writers", steps=steps, selection=selection) as recorder:
        for _ in range(STEPS):
            step()
            tracing.step()
        torch.cuda.synchronize()
    return [facts(launch) for launch in store.Run(recorder.writer.path).launches()]


def facts(launch: KernelLaunch) -> Any:
    # what an output held before the launch depends on what lay at its address
    args = [
        (arg.name, arg.declared, arg.writer, arg.before if arg.reads else None, arg.after, arg.value)
        for arg in launch.args
    ]
    return launch.index, launch.kernel_name, launch.phase, launch.grid, launch.stream, launch.site, args


@pytest.mark.parametrize("steps", [StepSelection(), StepSelection(last=5), StepSelection(every=3)], ids=str)
@pytest.mark.parametrize("digests", ["all", "none"])
def test_the_run_is_that_of_the_python_form(
    digests: Literal["all", "none"], steps: StepSelection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, before = training_step(), LaunchRecorder.before
    step()
    with monkeypatch.context() as patch:
        patch.setattr(compiled_launches, "wrapper", lambda: None)
        python = recorded(step, tmp_path / "python", digests, steps)
    by_python = 0

    def counted(*args: Any) -> Any:  # holds no arguments: tensors of later steps lie at the same addresses
        nonlocal by_python
        by_python += 1
        return before(*args)

    monkeypatch.setattr(LaunchRecorder, "before", counted)
    native = recorded(step, tmp_path / "native", digests, steps)

    assert native == python != []
    assert by_python < native[-1][0] / 2


@pytest.mark.parametrize(
    "selection",
    [Selection(kernels=("*gelu*",)), Selection(launches=(100, 200)), Selection(phases=("backward",))],
)
def test_selected_launches_are_those_of_the_python_form(
    selection: Selection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = training_step()
    step()
    with monkeypatch.context() as patch:
        patch.setattr(compiled_launches, "wrapper", lambda: None)
        python = recorded(step, tmp_path / "python", "all", StepSelection(), selection)

    assert recorded(step, tmp_path / "native", "all", StepSelection(), selection) == python != []


def test_the_recording_stops_at_the_same_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    double, x = torch.compile(lambda x: x * 2), torch.ones(64, device="cuda")
    selection = StepSelection(last=4, until="nan")

    def stop(runs: Path) -> RecordingStop:
        writer = store.create(runs, replace(INFO, steps=selection))
        with LaunchRecorder(writer, steps=selection):
            for step in range(STEPS):
                x[3] = float("nan") if step == 20 else 1.0
                double(x)
                torch.cuda.synchronize()  # digests that arrive late stop the recording a step later
                tracing.step()
        (one,) = store.Run(writer.path).records(RecordingStop)
        return one

    double(x)
    with monkeypatch.context() as patch:
        patch.setattr(compiled_launches, "wrapper", lambda: None)
        python = stop(tmp_path / "python")

    assert stop(tmp_path / "native") == python
    assert "launch #20" in python.reason


def test_a_launch_that_c_plus_plus_measures_takes_as_long_as_one_that_python_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.rand(1 << 26, device="cuda")  # some 0.1 ms to read and write
    scaled = torch.compile(lambda: x.mul_(0.5))
    scaled()

    def measured(runs: Path) -> float:
        with LaunchRecorder(store.create(runs, INFO), "none", operators="none", time=True) as recorder:
            for _ in range(STEPS):
                scaled()
        times = [one.device_us for one in store.Run(recorder.writer.path).records(LaunchTime)]
        assert len(times) == STEPS
        return min(one for one in times if one is not None)

    native = measured(tmp_path / "native")
    monkeypatch.setattr(compiled_launches, "wrapper", lambda: None)
    python = measured(tmp_path / "python")

    assert 50 < native < 1.5 * python
    assert python < 1.5 * native
