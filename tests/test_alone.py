"""A kernel replayed by itself: is the race its own, or does it come from outside? What is left unwritten?"""

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
from commands import DATA, tracing
from commands import recorded as recorded_by_command
from data.poisoned import fill
from data.racing import double, racing_sum
from planted_runs import saved
from records import arg, launch
from test_store import INFO

from tracing import store
from tracing.analyze.again import again, find_launch
from tracing.analyze.alone import Alone, Changed, Replays, Suspect, suspect
from tracing.analyze.divergence import Divergence, Producer
from tracing.cli.alone import Replaying, replay_text
from tracing.errors import Problem
from tracing.model import KernelLaunch
from tracing.record import fpsan
from tracing.record.launches import LaunchRecorder
from tracing.record.outputs import Keep
from tracing.record.passes import PassRecorder
from tracing.record.remade import remade
from tracing.report.alone import payload_text
from tracing.virtual_gpu import virtual_gpu


@triton.jit
def summed(in_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, n, BLOCK):
        total += tl.sum(tl.load(in_ptr + start + tl.arange(0, BLOCK)), axis=0)
    tl.store(out_ptr, total)


def launches() -> None:
    x, total, out = 1000 * torch.arange(64).sin(), torch.zeros(1), torch.zeros(64)  # sums of x round
    racing_sum[(64,)](x, total)
    double[(1,)](total, out)
    fill[(1,)](out, 40, BLOCK=64)
    summed[(1,)](x, total, 64, BLOCK=2)
    summed[(1,)](x, total, 64, BLOCK=64)


def recorded(runs: Path, call: Callable[[], None], **options: Any) -> store.Run:
    writer = store.create(runs, INFO)
    with virtual_gpu(), LaunchRecorder(writer, **options):
        call()
    writer.close()
    return store.Run(writer.path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    return recorded(tmp_path_factory.mktemp("runs"), launches, keep=Keep(inputs=True))


def divergence(one: KernelLaunch, **fields: Any) -> Divergence:
    found = Divergence("output", 0, one.index, one.kernel_name, "x", "y", one)
    return replace(found, **fields)


def told(run: store.Run, index: int, fpsan: bool = False, **fields: Any) -> str:
    one = list(run.launches())[index]
    return "\n".join(
        replay_text(divergence(one, **fields), (run, run), Replaying(20, fpsan, run.path.parent))
    )


def test_a_race_shows_without_a_gpu_by_the_order_of_the_programs(run: store.Run) -> None:
    text = told(run, 0)

    assert "of 20 replays (between" in text
    assert "differ from the first: the kernel itself is not deterministic" in text
    assert "out_ptr: 1 of 1 elements, 0:1, by up to" in text
    assert "of 21 left what a recorded" in text


def test_a_deterministic_kernel_differs_because_of_its_surroundings(run: store.Run) -> None:
    text = told(run, 1)

    assert "0 of 20 replays (between 0% and 16% at 95% confidence) differ from the first" in text
    assert "the difference needs its surroundings" in text
    assert "one program has no other order" in text
    assert "21 of 21 left what a recorded" in text


def test_what_a_kernel_leaves_unwritten_is_named(run: store.Run) -> None:
    text = told(run, 2)

    assert "keep what the memory held before" in text
    assert "out_ptr: 24 of 64 elements, 40:64" in text


def test_another_configuration_is_given_the_same_inputs(run: store.Run) -> None:
    other = list(run.launches())[4]
    text = told(run, 3, kind="launch", other=other)

    assert "b's configuration leaves others of the same inputs:" in text
    assert "out_ptr: 1 of 1 elements" in text


def test_fpsan_says_what_it_needs(run: store.Run) -> None:
    assert "not replayed: FpSan wants" in told(run, 1, fpsan=True)
    assert "FpSan leaves the 1 atomic additions of floats as they are" in told(run, 0, fpsan=True)


def test_inputs_that_were_not_kept_and_cannot_be_recorded_again_name_the_command(tmp_path: Path) -> None:
    gone = msgspec.structs.replace(INFO, case="gone", path="/gone/case.py")
    writer = store.create(tmp_path, gone)
    with virtual_gpu(), LaunchRecorder(writer):
        double[(1,)](torch.zeros(1), torch.zeros(1))
    text = told(store.Run(writer.path), 0)

    assert "the inputs of launch 0 were not kept, and recording it again failed" in text
    assert "`tracing run /gone/case.py --launches 0:1 --keep-inputs" in text


def test_a_launch_whose_inputs_were_not_kept_is_recorded_again(tmp_path: Path) -> None:
    run = store.Run(Path(recorded_by_command(str(DATA / "racing.py"), tmp_path, "--no-passes")))

    text = told(run, 1)

    assert "its inputs were not kept; launch 1 was recorded again" in text
    assert "differ from the first: the kernel itself is not deterministic" in text


def test_compare_says_why_there_is_no_replay(tmp_path: Path) -> None:
    one, other = (arg("out_ptr0", "out", "old", left) for left in "yz")
    a, b = saved(tmp_path / "a", [launch(0, one)]), saved(tmp_path / "b", [launch(0, other)])

    done = tracing("compare", str(a.path), str(b.path), "--replay", runs=tmp_path)

    assert "→ not replayed: the run has no source of triton_poi_fused_mul_0" in done.stdout


def test_a_replay_is_of_two_runs(tmp_path: Path) -> None:
    done = tracing("compare", "silu", "--repeat", "2", "--replay", runs=tmp_path)

    assert (done.returncode, "--repeat and --replay are questions of their own" in done.stderr) == (2, True)


def test_triton_takes_the_options_and_constants_of_a_recorded_launch(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    x, out = torch.rand(64), torch.zeros(1)
    with virtual_gpu(), PassRecorder(writer), LaunchRecorder(writer):
        summed[(1,)](x, out, 1, BLOCK=64, num_warps=2, enable_fp_fusion=False)  # 1 becomes a constant
    run = store.Run(writer.path)
    made = again(run, *find_launch(run, 0))

    with remade(made.module) as kernel, virtual_gpu():
        given = {"in_ptr": x, "out_ptr": out, **made.facts["values"]}
        compiled = kernel.function[1, 1, 1](**given, **kernel.constants, **kernel.options)

    assert (kernel.constants["n"], kernel.options["enable_fp_fusion"]) == (1, False)
    assert (compiled.metadata.num_warps, compiled.metadata.enable_fp_fusion) == (2, False)


# ---- which launch is accused


PRODUCER = Producer(3, "k", "out_ptr", ("out_ptr",))


@pytest.mark.parametrize(
    ("fields", "accused"),
    [
        ({"kind": "output"}, Suspect(7)),
        ({"kind": "input", "producer": PRODUCER}, Suspect(3)),
        ({"kind": "launch", "other": launch(9)}, Suspect(7, 9)),
    ],
)
def test_the_kernel_that_made_the_difference_is_accused(fields: dict[str, Any], accused: Suspect) -> None:
    assert suspect(divergence(launch(7), **fields)) == accused


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"kind": "input"}, "it comes from outside of Triton"),
        ({"kind": "input", "operator": "aten::mm"}, "aten::mm, which is no kernel of Triton"),
        ({"kind": "input", "producer": replace(PRODUCER, changed_in="b")}, "outside of Triton"),
        ({"kind": "added"}, "does not have this launch"),
        ({"kind": "launch", "other": launch(9, name="k")}, "different kernels"),
    ],
)
def test_a_difference_that_no_kernel_made_accuses_none(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(Problem, match=why):
        suspect(divergence(launch(7), **fields))


# ---- FpSan


def payloads(*bits: str, apart: tuple[Changed, ...] = ()) -> str:
    replays = Replays(tuple({"out_ptr": one} for one in bits), (), ())
    return "\n".join(payload_text(Alone("a GPU", replays, replays if apart else None, apart)))


def test_equal_payloads_are_rounding_and_others_are_not() -> None:
    changed = Changed("out_ptr", 2, 64, ((3, 5),), 0.0)

    assert "3 replays leave equal payloads: rounding" in payloads("x", "x", "x")
    assert "different payloads: not rounding alone" in payloads("x", "y")
    assert "out_ptr: 2 of 64 elements, 3:5" in payloads("x", "x", apart=(changed,))


@pytest.mark.skipif(not fpsan.available(), reason="this Triton has no FpSan: 3.8 is the first that has")
def test_a_kernel_under_fpsan_multiplies_no_floats() -> None:
    with virtual_gpu("sm_90"):
        plain = double[(1,)](torch.zeros(1), torch.zeros(1))
        with fpsan.instrumented():
            exact = double[(1,)](torch.zeros(1), torch.zeros(1))

    assert "arith.mulf" in plain.asm["ttgir"]
    assert "arith.mulf" not in exact.asm["ttgir"] and "cubin" in exact.asm


def test_fpsan_is_off_again_afterwards() -> None:
    with fpsan.instrumented():
        pass

    assert triton.knobs.compilation.instrumentation_mode == ""
