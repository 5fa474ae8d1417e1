"""On a GPU: a kernel replayed by Triton's own launcher, and with FpSan if Triton has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch
from commands import DATA, recorded, tracing
from data.poisoned import fill
from data.racing import double, racing_sum
from data.summed import summed
from handmade.records import INFO
from recorded.runs import in_two_blocks

from tracing import store
from tracing.analyze.replay.replay_verdict import left_as, rate
from tracing.model import ReplayResult
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep
from tracing.replay import fpsan
from tracing.replay.kernel_replay import ReplayRequest, replay
from tracing.store.recorded_launch import RecordedLaunch, recorded_launch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
RACING, DOUBLE, FILL, SUMMED, SUMMED_OTHERWISE = range(5)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    writer = store.create(tmp_path_factory.mktemp("runs"), INFO)
    x, total = torch.rand(1 << 14, device="cuda"), torch.zeros(1, device="cuda")
    rounded = torch.full_like(x, 0.001)
    rounded[0] = 1 << 20  # one can add a sum of 128 elements to it, not one of 16
    with LaunchRecorder(writer, keep=Keep(inputs=True)):
        racing_sum[(1 << 14,)](x, torch.zeros(1, device="cuda"))
        double[(1,)](x, total)
        fill[(1,)](torch.zeros(64, device="cuda"), 40, BLOCK=64)
        summed[(1,)](rounded, torch.zeros(1, device="cuda"), 1 << 14, BLOCK=16)
        summed[(1,)](rounded, torch.zeros(1, device="cuda"), 1 << 14, BLOCK=128)
    writer.close()
    return store.Run(writer.path)


def replayed(*ones: RecordedLaunch) -> ReplayResult:
    """The first on its own inputs, the other on these, too."""
    sides = zip(("a", "b"), ones, strict=False)
    return replay([ReplayRequest(side, one, "a", ones[0]) for side, one in sides], ["out_ptr"], 20)  # type: ignore[arg-type]


def test_a_race_is_the_kernels_own(run: store.Run) -> None:
    series = replayed(recorded_launch(run, RACING)).series[0]

    print(rate(series), series.varying)
    assert rate(series).differing > 0
    assert [(one.argument, one.count) for one in series.varying] == [("out_ptr", 1)]


@pytest.mark.parametrize("index", [DOUBLE, SUMMED])
def test_a_deterministic_kernel_reproduces_the_recorded_results_each_time(run: store.Run, index: int) -> None:
    one = recorded_launch(run, index)
    series = replayed(one).series[0]

    assert rate(series).differing == 0
    assert left_as(series, one.expected) == 21


def test_elements_that_a_kernel_does_not_write_are_named(run: store.Run) -> None:
    series = replayed(recorded_launch(run, FILL)).series[0]

    assert series.unwritten == ()
    assert [one.ranges for one in series.untouched] == [((40, 64),)]


def test_another_configuration_rounds_otherwise(run: store.Run) -> None:
    result = replayed(recorded_launch(run, SUMMED), recorded_launch(run, SUMMED_OTHERWISE))

    assert [one.argument for one in result.differences[0].elements] == ["out_ptr"]


def test_the_race_that_a_divergence_accuses_is_replayed_in_a_process_of_its_own(
    tmp_path: Path,
) -> None:
    case = str(DATA / "racing.py")  # eager races, too
    a, *others = (recorded(case, tmp_path, "--no-passes", passed=False) for _ in range(3))

    tried = (tracing("replay", b, "--against", a, runs=tmp_path) for b in others)
    done = next(one for one in tried if one.returncode == 1)  # two runs may be equal by chance
    print(done.stdout, done.stderr)
    assert f"racing_sum, replayed on {torch.cuda.get_device_name()}" in done.stdout
    assert "the kernel is not deterministic" in done.stdout


def test_the_command_detects_the_race_on_inputs_that_it_records_anew(tmp_path: Path) -> None:
    run = recorded(str(DATA / "racing.py"), tmp_path, "--no-passes", passed=False)
    index = next(one.index for one in store.Run(Path(run)).launches() if one.kernel_name == "racing_sum")

    done = tracing("replay", run, "--launch", str(index), "--kernel", "racing_sum", runs=tmp_path)

    print(done.stdout, done.stderr)
    assert done.returncode == 1 and "the kernel is not deterministic" in done.stdout


needs_fpsan = pytest.mark.skipif(not fpsan.available(), reason="needs FpSan: Triton 3.8 or later")


@needs_fpsan
def test_another_order_of_additions_leaves_equal_payloads(run: store.Run) -> None:
    with fpsan.instrumented():
        result = replayed(recorded_launch(run, SUMMED), recorded_launch(run, SUMMED_OTHERWISE))

    assert result.differences == ()


@needs_fpsan
def test_fewer_additions_leave_other_payloads(run: store.Run) -> None:
    whole, part = recorded_launch(run, SUMMED), recorded_launch(run, SUMMED_OTHERWISE)
    args = [msgspec.structs.replace(a, value=1 << 13) if a.name == "n" else a for a in part.launch.args]
    part = replace(part, launch=msgspec.structs.replace(part.launch, args=tuple(args)))
    with fpsan.instrumented():
        result = replayed(whole, part)

    assert [one.argument for one in result.differences[0].elements] == ["out_ptr"]


@needs_fpsan
def test_the_command_reports_that_a_sum_in_another_order_only_rounds(tmp_path: Path) -> None:
    a, b = in_two_blocks(tmp_path, keep=Keep(inputs=True))
    done = tracing("replay", str(a.path), "--against", str(b.path), "--fpsan", runs=tmp_path)

    print(done.stdout, done.stderr)
    assert "its code differs: a and b produce different results on equal inputs" in done.stdout
    assert "under FpSan both kernels produce equal payloads: the difference is rounding" in done.stdout
