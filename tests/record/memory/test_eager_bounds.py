"""A case whose kernels leave their arguments has not passed, also if only eager launches them."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.records import INFO

from tracing import store
from tracing.cli.answers.run_answer import RunAnswer
from tracing.model import Outcome
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.run import record

CASE = """
import torch
import triton
import triton.language as tl
from tracing import Workload


@triton.jit
def unmasked(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at), mask=at < n)


def launched(x):
    y = torch.empty_like(x)
    unmasked[(2,)](x, y, x.numel(), BLOCK=64)
    return y


def only_in_eager(x):
    return x * 2 * 0.5 if torch.compiler.is_compiling() else launched(x)


def build(device, everywhere: bool = False):
    return Workload(launched if everywhere else only_in_eager, (torch.rand(100, device=device),))
"""


def outcome(folder: Path, options: str, *, allow: bool) -> tuple[Outcome, store.Run]:
    (folder / "case.py").write_text(CASE)
    device = Device("sm_90")
    experiment = Experiment(device.load(f"{folder / 'case.py'}{options}"), device, 0)
    writer = store.create(folder, INFO)
    ended = record(
        experiment, LaunchRecorder(writer, allow_out_of_bounds=allow), lambda stage: None, passes=None
    )
    writer.close()
    return ended, store.Run(writer.path)


def test_an_access_out_of_bounds_in_eager_ends_the_case(tmp_path: Path) -> None:
    ended, _ = outcome(tmp_path, "", allow=False)

    assert ended.status == "failed"
    assert "in eager unmasked loads x_ptr[100] of 100 elements, outside of its storage" in ended.detail


def test_the_compiled_launch_that_eager_makes_too_is_recorded_before_the_case_ends(tmp_path: Path) -> None:
    ended, run = outcome(tmp_path, ":everywhere=true", allow=False)

    assert ended.status == "failed" and "in eager" not in ended.detail
    assert [one.launch for process in run.processes() for one in run.out_of_bounds(process)] == [0]


@pytest.mark.parametrize(("options", "named"), [("", 1), (":everywhere=true", 0)])
def test_an_allowed_access_out_of_bounds_is_no_pass(
    options: str, named: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, run = outcome(tmp_path, options, allow=True)
    status = RunAnswer(run, ended).print(show=False, as_json=False)
    (first, *rest) = capsys.readouterr().err.splitlines()

    assert (ended.status, status) == ("out of bounds", 1), ended.detail
    assert first.startswith("out of bounds: ")
    assert first.count("in eager unmasked: 28 loads outside of x_ptr") == named  # else the run has it
    assert sum("28 loads outside of x_ptr" in line for line in (first, *rest)) == 1
