"""A launch executed by itself: its results, and their dependence on memory that was not recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import triton
import triton.language as tl
from data.poisoned import fill
from data.racing import double, racing_sum
from data.summed import summed
from handmade.records import INFO

from tracing import store
from tracing.analyze.replay.replay_verdict import (
    NotComparable,
    Reproduced,
    UndecidedReplay,
    left_as,
    rate,
    varies,
    verdict,
)
from tracing.digest.host import digest
from tracing.errors import Problem
from tracing.model import ReplayResult
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep
from tracing.record.passes.recorder import PassRecorder
from tracing.replay import fpsan
from tracing.replay.kernel_replay import ReplayRequest, replay
from tracing.replay.loaded_kernel import load_kernel
from tracing.store.recorded_launch import RecordedLaunch, recorded_launch
from tracing.virtual_gpu import virtual_gpu

RACING, DOUBLE, FILL, SUMMED, SUMMED_OTHERWISE, BEYOND, EXPANDED, PART, SOME = range(9)


@triton.jit
def beyond(in_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) + tl.load(in_ptr + n + at))


@triton.jit
def some(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    wanted = tl.load(in_ptr + BLOCK + at) == 0  # outside of the argument
    tl.store(out_ptr + at, at.to(tl.float32), wanted & (at < 8))


@triton.jit
def through_pointers(table_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    source = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + at, tl.load(source + at))


def launches() -> None:
    x, total, out = 1000 * torch.arange(64).sin(), torch.zeros(1), torch.zeros(64)  # sums of x are rounded
    racing_sum[(64,)](x, total)
    double[(1,)](total, torch.zeros(1))
    fill[(1,)](out, 40, BLOCK=64)
    summed[(1,)](x, total, 64, BLOCK=2)
    summed[(1,)](x, total, 64, BLOCK=64)
    beyond[(1,)](x[:16], out[:16], 16, BLOCK=16)
    double[(1,)](torch.ones(1).expand(8), total)
    fill[(1,)](torch.full((64,), 7.0), 40, BLOCK=64)
    some[(1,)](x[:16], torch.full((16,), 7.0), BLOCK=16)


def recorded(runs: Path, call: Callable[[], None], **options: Any) -> store.Run:
    writer = store.create(runs, INFO)
    with virtual_gpu(), LaunchRecorder(writer, **options):
        call()
    writer.close()
    return store.Run(writer.path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    return recorded(tmp_path_factory.mktemp("runs"), launches, keep=Keep(inputs=True))


def replayed(*ones: RecordedLaunch) -> ReplayResult:
    """Replays the first launch on its own inputs, and the others on the inputs of the first."""
    sides = zip(("a", "b"), ones, strict=False)
    return replay([ReplayRequest(side, one, "a", ones[0]) for side, one in sides], ["out_ptr"], 20)  # type: ignore[arg-type]


def test_a_race_is_detected_without_a_gpu_by_reordering_programs(run: store.Run) -> None:
    one = recorded_launch(run, RACING)
    series = replayed(one).series[0]

    assert varies(series) and rate(series).differing > 0
    assert [(output.argument, output.count, output.ranges) for output in series.varying] == [
        ("out_ptr", 1, ((0, 1),))
    ]
    assert 0 < (left_as(series, one.expected) or 0) < 21


@pytest.mark.parametrize("index", [DOUBLE, SUMMED, SUMMED_OTHERWISE, EXPANDED])
def test_a_deterministic_kernel_reproduces_the_recorded_results_each_time(index: int, run: store.Run) -> None:
    one = recorded_launch(run, index)
    series = replayed(one).series[0]

    assert not varies(series) and series.unwritten == ()
    assert left_as(series, one.expected) == 21


@pytest.mark.parametrize("index", [FILL, PART])
def test_elements_that_a_launch_does_not_write_are_named_and_do_not_hide_the_others(
    index: int, run: store.Run
) -> None:
    one = recorded_launch(run, index)
    result = replayed(one)
    series = result.series[0]

    assert [(each.argument, each.ranges) for each in series.untouched] == [("out_ptr", ((40, 64),))]
    assert series.unwritten == ()
    assert left_as(series, one.expected) == 21
    assert verdict(result, {"a": one.expected}, ()) == Reproduced()


def test_wrong_bits_next_to_elements_that_a_launch_does_not_write_are_no_reproduction(run: store.Run) -> None:
    one, other = recorded_launch(run, PART), torch.full((64,), 7.0)
    other[:39] = torch.arange(39)

    assert left_as(replayed(one).series[0], {"out_ptr": digest(other)}) == 0


def test_without_the_content_of_elements_that_a_launch_does_not_write_digests_cannot_be_compared(
    run: store.Run,
) -> None:
    kept = recorded_launch(run, PART)
    one = replace(kept, results={})

    assert verdict(replayed(one), {"a": one.expected}, ()) == NotComparable()
    anew = replay([ReplayRequest("a", one, "a", kept)], ["out_ptr"], 1)
    assert verdict(anew, {"a": one.expected}, ()) == Reproduced()


def test_elements_whose_writing_depends_on_memory_that_was_not_kept_are_undecided(run: store.Run) -> None:
    one = recorded_launch(run, SOME)
    result = replayed(one)

    assert result.series[0].untouched == ()
    assert [each.count for each in result.series[0].unwritten] == [16]
    assert verdict(result, {"a": one.expected}, ()) == UndecidedReplay()


def test_elements_that_depend_on_memory_outside_of_the_arguments_are_named(run: store.Run) -> None:
    series = replayed(recorded_launch(run, BEYOND)).series[0]

    assert not varies(series)
    assert [(one.argument, one.ranges) for one in series.unwritten] == [("out_ptr", ((0, 16),))]


def test_another_configuration_is_replayed_on_the_same_inputs(run: store.Run) -> None:
    a, b = recorded_launch(run, SUMMED), recorded_launch(run, SUMMED_OTHERWISE)

    (difference,) = replayed(a, b).differences

    assert [(one.argument, one.count) for one in difference.elements] == [("out_ptr", 1)]


def test_inputs_that_differ_from_the_recorded_ones_are_refused(run: store.Run) -> None:
    one = recorded_launch(run, DOUBLE)
    read = one.launch.args[0]
    assert read.before is not None
    other = msgspec.structs.replace(read, before=msgspec.structs.replace(read.before, bits="0" * 32))
    launch = msgspec.structs.replace(one.launch, args=(other, *one.launch.args[1:]))

    with pytest.raises(Problem, match=f"the contents of in_ptr .* the launch read {'0' * 32}"):
        replayed(replace(one, launch=launch))


def test_triton_compiles_with_the_options_and_constants_of_a_recorded_launch(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    x, out = torch.rand(64), torch.zeros(1)
    with virtual_gpu(), PassRecorder(writer), LaunchRecorder(writer):
        summed[(1,)](x, out, 1, BLOCK=64, num_warps=2, enable_fp_fusion=False)  # 1 becomes a constant
    one = recorded_launch(store.Run(writer.path), 0)

    with load_kernel(one.module) as kernel, virtual_gpu():
        given = {"in_ptr": x, "out_ptr": out, **one.values}
        compiled = kernel.function[1, 1, 1](**given, **kernel.constants, **kernel.options)

    assert (kernel.constants["n"], kernel.options["enable_fp_fusion"]) == (1, False)
    assert (compiled.metadata.num_warps, compiled.metadata.enable_fp_fusion) == (2, False)


@triton.jit
def thirds(out_ptr, by):
    tl.store(out_ptr, 1.0 / by)


@pytest.mark.skipif(torch.__version__ >= "2.15", reason="torch 2.15 compiles a Python float as fp32")
def test_a_float_that_inductor_compiled_as_fp64_stays_one(tmp_path: Path) -> None:
    def call() -> None:
        def fn(out: torch.Tensor) -> None:
            thirds[(1,)](out, 3.0)

        torch.compile(fn)(torch.zeros(1, dtype=torch.float64))

    one = recorded_launch(recorded(tmp_path, call, keep=Keep(inputs=True)), 0)
    series = replayed(one).series[0]

    assert "TYPES = {'by': 'fp64'}" in one.module
    assert left_as(series, one.expected) == 21


def test_members_of_a_tuple_are_launched_as_a_tuple() -> None:
    module = """
import triton
import triton.language as tl

@triton.jit
def KERNEL(out_ptr, pair, by):
    at = tl.arange(0, 4)
    tl.store(out_ptr + at, tl.load(pair[0] + at) * pair[1].factor + pair[1][1] * by)

CONSTANTS, OPTIONS, FIELDS = {"pair.1.1": 10}, {}, {"pair.1": ("factor", "term")}
"""
    x, out = torch.arange(4.0), torch.zeros(4)

    with load_kernel(module) as kernel:
        kernel.interpret({"out_ptr": out, "pair.0": x, "pair.1.0": 3, "by": 2}, (1, 1, 1))

    assert out.tolist() == [20.0, 23.0, 26.0, 29.0]


# ---- FpSan


@pytest.mark.skipif(not fpsan.available(), reason="this Triton has no FpSan: 3.8 is the first that has")
def test_a_kernel_under_fpsan_multiplies_no_floats() -> None:
    with virtual_gpu("sm_90"):
        plain = double[(1,)](torch.zeros(1), torch.zeros(1))
        with fpsan.instrumented():
            exact = double[(1,)](torch.zeros(1), torch.zeros(1))

    assert "arith.mulf" in plain.asm["ttgir"]
    assert "arith.mulf" not in exact.asm["ttgir"] and "cubin" in exact.asm


def test_fpsan_is_restored_afterwards() -> None:
    with fpsan.instrumented():
        pass

    assert triton.knobs.compilation.instrumentation_mode == ""


def test_a_launch_that_reads_through_addresses_is_not_replayed(tmp_path: Path) -> None:
    x, out = torch.ones(16), torch.zeros(16)

    def call() -> None:
        through_pointers[(1,)](torch.tensor([x.data_ptr()]), out, BLOCK=16)

    run = recorded(tmp_path, call, keep=Keep(inputs=True))

    assert torch.equal(out, x)
    with pytest.raises(Problem, match="through addresses in table_ptr"):
        replayed(recorded_launch(run, 0))
