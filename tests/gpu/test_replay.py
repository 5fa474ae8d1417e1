"""On a GPU: a kernel replayed by itself, by Triton's own launch; FpSan where Triton has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch
from commands import DATA, recorded, tracing
from data.poisoned import fill
from data.racing import double, racing_sum
from recorded_runs import in_two_blocks
from test_alone import summed
from test_store import INFO

from tracing import store
from tracing.analyze.again import again, find_launch
from tracing.analyze.alone import Alone, Replays
from tracing.record import fpsan
from tracing.record.alone import Side, replayed
from tracing.record.launches import LaunchRecorder
from tracing.record.outputs import Keep

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
RACING, DOUBLE, FILL, SUMMED, SUMMED_OTHERWISE = range(5)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    writer = store.create(tmp_path_factory.mktemp("runs"), INFO)
    x, out = torch.rand(1 << 14, device="cuda"), torch.zeros(64, device="cuda")
    with LaunchRecorder(writer, keep=Keep(inputs=True)):
        racing_sum[(1 << 14,)](x, torch.zeros(1, device="cuda"))
        double[(1,)](x, out)
        fill[(1,)](out, 40, BLOCK=64)
        summed[(1,)](x, torch.zeros(1, device="cuda"), 1 << 14, BLOCK=16)
        summed[(1,)](x, torch.zeros(1, device="cuda"), 1 << 14, BLOCK=128)
    writer.close()
    return store.Run(writer.path)


def side(run: store.Run, index: int) -> Side:
    made = again(run, *find_launch(run, index))
    contents = {name: run.bytes(blob) for name, blob in made.inputs.items()}
    return Side(made.module, made.facts, contents, ["out_ptr"])


def alone(*sides: Side) -> Alone:
    return msgspec.convert(replayed(sides, 20), Alone)


def left_as_recorded(run: store.Run, index: int, replays: Replays) -> int:
    return replays.left(side(run, index).facts["expected"])


def test_a_race_is_the_kernels_own(run: store.Run) -> None:
    found = alone(side(run, RACING)).a

    print(found.rate, found.changed)
    assert found.rate.differing > 0
    assert [(one.argument, one.count) for one in found.changed] == [("out_ptr", 1)]


@pytest.mark.parametrize("index", [DOUBLE, SUMMED])
def test_a_deterministic_kernel_leaves_what_was_recorded_each_time(run: store.Run, index: int) -> None:
    found = alone(side(run, index)).a

    assert found.rate.differing == 0
    assert left_as_recorded(run, index, found) == 21


def test_what_a_kernel_leaves_unwritten_is_found(run: store.Run) -> None:
    found = alone(side(run, FILL)).a

    assert [one.ranges for one in found.unwritten] == [((40, 64),)]


def test_another_configuration_rounds_otherwise(run: store.Run) -> None:
    found = alone(side(run, SUMMED), side(run, SUMMED_OTHERWISE))

    assert [one.argument for one in found.apart] == ["out_ptr"]


def test_compare_replays_the_race_in_a_process_of_its_own(tmp_path: Path) -> None:
    case = str(DATA / "racing.py")  # eager races, too
    a, *others = (recorded(case, tmp_path, "--no-passes", passed=False) for _ in range(3))

    tried = (tracing("compare", a, b, "--replay", runs=tmp_path) for b in others)
    done = next(one for one in tried if one.returncode == 1)  # two runs may be equal by chance
    print(done.stdout, done.stderr)
    assert f"racing_sum on the same inputs, on {torch.cuda.get_device_name()}" in done.stdout
    assert "differ from the first: the kernel itself is not deterministic" in done.stdout


needs_fpsan = pytest.mark.skipif(not fpsan.available(), reason="needs FpSan: Triton 3.8 or later")


@needs_fpsan
def test_another_order_of_additions_leaves_equal_payloads(run: store.Run) -> None:
    with fpsan.instrumented():
        found = alone(side(run, SUMMED), side(run, SUMMED_OTHERWISE))

    assert found.apart == ()


@needs_fpsan
def test_fewer_additions_leave_other_payloads(run: store.Run) -> None:
    whole, part = side(run, SUMMED), side(run, SUMMED_OTHERWISE)
    part = replace(part, facts={**part.facts, "values": {**part.facts["values"], "n": 1 << 13}})
    with fpsan.instrumented():
        found = alone(whole, part)

    assert [one.argument for one in found.apart] == ["out_ptr"]


@needs_fpsan
def test_compare_tells_that_a_sum_in_another_order_only_rounds(tmp_path: Path) -> None:
    a, b = in_two_blocks(tmp_path, keep=Keep(inputs=True))
    done = tracing("compare", str(a.path), str(b.path), "--replay", "--fpsan", runs=tmp_path)

    print(done.stdout, done.stderr)
    assert "b's configuration leaves others of the same inputs:" in done.stdout
    assert "under FpSan the kernels of both runs leave equal payloads: rounding" in done.stdout
