"""A kernel that the program itself launches is compared with the interpreter, on a GPU only."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO

from tracing import store
from tracing.analyze.judge.judgement import RunJudgement
from tracing.errors import Problem
from tracing.interpreter import rounded_otherwise
from tracing.judge.run_referee import judge_run
from tracing.model import KernelLaunch
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep, load
from tracing.replay.reference import reference
from tracing.report.judge.judgement import judgement_text
from tracing.store.recorded_launch import recorded_launch
from tracing.virtual_gpu import virtual_gpu

SUM, DRAW = range(2)


@triton.jit
def row_sums(x, y, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    tl.store(y + row, tl.sum(tl.load(x + row * WIDTH + tl.arange(0, WIDTH)), 0))


@triton.jit
def draw(y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.rand(7, at))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    writer = store.create(tmp_path_factory.mktemp("runs"), INFO)
    with virtual_gpu(), LaunchRecorder(writer, keep=Keep(inputs=True)):
        row_sums[(4,)](torch.randn(4, 64), torch.zeros(4), WIDTH=64)
        draw[(1,)](torch.zeros(16), BLOCK=16)
    writer.close()
    return store.Run(writer.path)


def judged(run: store.Run, change: Callable[[torch.Tensor], torch.Tensor]) -> RunJudgement:
    """The judgement where the interpreter leaves something else than the kernel did."""

    def interpreted(launch: KernelLaunch, **how: Any) -> dict[str, torch.Tensor]:
        given = reference(recorded_launch(run, launch.index), **how)
        return {name: change(one) for name, one in given.items()}

    return judge_run(run, run.processes()[0], interpreted=interpreted)


def test_another_order_of_a_sum_is_right(run: store.Run) -> None:
    said = judged(run, lambda y: y * (1 + 1e-6))

    assert [one.verdict for one in said.launches] == ["right", "right"]


def test_a_compiled_kernel_that_leaves_something_else_is_off(run: store.Run) -> None:
    said = judged(run, lambda y: y + 0.5 * torch.arange(len(y)).eq(2) * (len(y) == 4))

    assert said.accused is not None and said.accused.launch == SUM
    [wrong] = said.accused.wrong
    assert (wrong.name, wrong.index, wrong.count, wrong.of) == ("y", (2,), 1, 4)
    assert "    against   Triton's interpreter, on the same inputs" in [*judgement_text(said, ())]


def test_a_large_element_acquits_no_fault_of_the_others(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    with virtual_gpu(), LaunchRecorder(writer, keep=Keep(inputs=True)):
        x = torch.ones(4, 64)
        x[3] = -1e9
        row_sums[(4,)](x, torch.zeros(4), WIDTH=64)
    writer.close()

    said = judged(store.Run(writer.path), lambda y: y * torch.tensor([1.5, 1, 1, 1]))

    assert said.accused is not None and said.accused.wrong[0].index == (0,)


def test_what_the_interpreter_cannot_execute_has_no_reference(run: store.Run) -> None:
    def refuses(launch: KernelLaunch, **how: Any) -> dict[str, torch.Tensor]:
        raise Problem("the interpreter failed")

    said = judge_run(run, run.processes()[0], interpreted=refuses)

    assert (said.launches[SUM].verdict, said.launches[SUM].why) == ("no reference", "the interpreter failed")


def test_the_virtual_gpu_has_no_reference_for_it(run: store.Run) -> None:
    text = "\n".join(judgement_text(judge_run(run, run.processes()[0]), ()))

    assert "launch 0 row_sums, 1 draw: no reference, because it is hand-written" in text


@triton.jit
def quantized(x, y, scale, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    scaled = tl.exp(tl.load(x + at) * scale) * 1000
    tl.store(y + at, scaled.to(tl.int32))


@triton.jit
def every_other(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at), mask=at % 2 == 0)


def recorded(folder: Path, launch: Callable[[], None], rounding: AbstractContextManager[None]) -> store.Run:
    """A run of launches that a compiler rounded otherwise."""
    writer = store.create(folder, INFO)
    with virtual_gpu(), LaunchRecorder(writer, keep=Keep(inputs=True)), rounding:
        launch()
    writer.close()
    return store.Run(writer.path)


def quantize() -> None:
    x = torch.linspace(0, 4, 4096)
    quantized[(1,)](x, torch.zeros(4096, dtype=torch.int32), 1.1, BLOCK=4096)


def test_integers_that_rounding_decides_are_right_and_others_are_not(tmp_path: Path) -> None:
    run = recorded(tmp_path, quantize, rounded_otherwise(99))
    plain = reference(recorded_launch(run, 0))["y"]

    assert int((plain != kept(run)).sum()) > 20
    assert judged(run, lambda y: y).launches[0].verdict == "right"
    off = judged(run, lambda y: y + torch.arange(4096).eq(17).int() * 1000)
    assert off.accused is not None and off.accused.wrong[0].index == (17,)


def test_elements_that_a_launch_does_not_write_are_not_compared(tmp_path: Path) -> None:
    def launch() -> None:
        every_other[(1,)](torch.rand(16), torch.ones(16), BLOCK=16)

    run = recorded(tmp_path, launch, nullcontext())

    assert judged(run, lambda y: y).launches[0].verdict == "right"
    off = judged(run, lambda y: y + torch.arange(16).lt(3))
    assert off.accused is not None
    [wrong] = off.accused.wrong
    assert (wrong.count, wrong.of) == (2, 16)  # elements 0 and 2


@triton.jit
def thirds(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) / 3)


def test_a_quotient_that_is_exact_may_be_a_product_with_a_reciprocal(tmp_path: Path) -> None:
    def launch() -> None:
        thirds[(1,)](torch.arange(64) * 3, torch.zeros(64, dtype=torch.float64), BLOCK=64)

    run = recorded(tmp_path, launch, nullcontext())

    third = torch.tensor(1 / 3)
    assert judged(run, lambda y: (torch.arange(64) * 3 * third).double()).launches[0].verdict == "right"
    assert judged(run, lambda y: y * (1 + 1e-5)).accused is not None


@triton.jit
def joined(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    both = tl.cat(tl.load(x + at), tl.load(x + BLOCK + at), can_reorder=True)
    tl.store(y + tl.arange(0, 2 * BLOCK), both)


def test_elements_in_any_order_have_no_reference(tmp_path: Path) -> None:
    def launch() -> None:
        joined[(1,)](torch.rand(256), torch.zeros(256), BLOCK=128)

    run = recorded(tmp_path, launch, nullcontext())

    assert judged(run, lambda y: y).launches[0].verdict == "right"
    [said] = judged(run, lambda y: y.flip(0)).launches
    assert (said.verdict, said.why) == (
        "no reference", "tl.cat with can_reorder leaves its elements in any order"
    )  # fmt: skip


def test_a_single_element_of_a_stride_is_compared(tmp_path: Path) -> None:
    def launch() -> None:
        counted[(1,)](torch.zeros(2, dtype=torch.int64)[::2])

    run = recorded(tmp_path, launch, nullcontext())

    assert judged(run, lambda y: y).launches[0].verdict == "right"
    assert judged(run, lambda y: y + 1).accused is not None


@triton.jit
def counted(y):
    tl.store(y, 7)


def test_a_launch_whose_inputs_were_not_kept_has_no_reference(run: store.Run) -> None:
    def interpreted(launch: KernelLaunch, **how: Any) -> dict[str, torch.Tensor]:
        return reference(replace(recorded_launch(run, launch.index), inputs={}), **how)

    said = judge_run(run, run.processes()[0], interpreted=interpreted).launches[SUM]

    assert said.why == "what it leaves depends on memory whose contents were not kept"


@triton.jit
def pages(x, y, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + 4096 * (FIRST + at), at < BLOCK, 0.0))


@pytest.mark.parametrize(("first", "verdict"), [(0, "right"), (4, "no reference")])
def test_what_a_kernel_reads_outside_of_its_argument_is_left_out(
    tmp_path: Path, first: int, verdict: str
) -> None:
    x, y = torch.rand(12 * 4096), torch.zeros(8)
    half = x.as_strided((4,), (4096,))

    run = recorded(tmp_path, lambda: pages[(1,)](half, y, FIRST=first, BLOCK=8), nullcontext())

    assert judged(run, lambda y: y).launches[0].verdict == verdict


def test_large_integers_are_compared_exactly(tmp_path: Path) -> None:
    def launch() -> None:
        every_other[(1,)](torch.full((16,), 2**60), torch.zeros(16, dtype=torch.int64), BLOCK=16)

    run = recorded(tmp_path, launch, nullcontext())

    off = judged(run, lambda y: y + torch.arange(16).eq(4))
    assert off.accused is not None and off.accused.wrong[0].index == (4,)


@triton.jit
def products(x, y, z, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    a, b = tl.load(x + rows * BLOCK + columns), tl.load(y + rows * BLOCK + columns)
    tl.store(z + rows * BLOCK + columns, tl.sum(a[:, :, None] * b[None, :, :], 1))


def test_a_sum_of_products_that_triton_multiplies_in_tf32_is_right(tmp_path: Path) -> None:
    def launch() -> None:
        products[(1,)](torch.rand(32, 32), torch.rand(32, 32), torch.zeros(32, 32), BLOCK=32)

    run = recorded(tmp_path, launch, nullcontext())

    assert judged(run, lambda z: z * (1 + 2.0**-11)).launches[0].verdict == "right"


def test_a_signal_ends_the_judgement_between_two_executions_of_a_launch(run: store.Run) -> None:
    executed, shown = [], []

    def interpreted(launch: KernelLaunch, **how: Any) -> dict[str, torch.Tensor]:
        executed.append(launch.index)
        return {name: one + 1 for name, one in reference(recorded_launch(run, launch.index), **how).items()}

    said = judge_run(
        run,
        run.processes()[0],
        shown.append,
        interpreted=interpreted,
        stopped_by=lambda: "SIGTERM" if executed else "",
    )

    assert executed == [SUM]
    assert [one.why for one in said.launches] == ["SIGTERM ended the judgement before it"] * 2
    assert shown[-1] == "judging: launch 2 of 2 outside of graphs"


def kept(run: store.Run) -> torch.Tensor:
    return load(run.bytes(recorded_launch(run, 0).results["y"]))
