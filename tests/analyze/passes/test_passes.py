"""Which kernel and which pass a name selects, and the error for a name that fits none or several."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.records import compiled, launch, new_run
from handmade.runs import add
from msgspec.structs import replace

from tracing import store
from tracing.analyze.passes.compilations import (
    compilation,
    compilations,
    label,
    other_namesakes,
    unfinished_passes,
)
from tracing.analyze.passes.pass_table import find_pass, history, kernel_passes, passes_of, steps
from tracing.errors import Problem

DOT = '%0 = tt.dot %a, %b : f32 loc("k.py":1:1)\n'
MMA = "%0 = ttng.warp_group_dot %a, %b : f32 loc(#loc)\n"


@pytest.fixture
def run(tmp_path: Path) -> store.Run:
    """A matmul in two configurations, and a softmax that died in its second pass."""
    writer = new_run(tmp_path)
    compiled(
        writer, "matmul", DOT, ("ttir", "cse", DOT), ("ttgir", "accelerate", MMA), ("ttgir", "cse", MMA),
        num_warps="4",
    )  # fmt: skip
    compiled(writer, "matmul", DOT, ("ttir", "cse", DOT), number=1, num_warps="8")
    compiled(writer, "softmax", DOT, ("ttir", "cse", MMA), ("ttgir", "pipeline", None), number=2)
    return store.Run(writer.path)


def problem(*args: str, run: store.Run) -> str:
    with pytest.raises(Problem) as raised:
        find_pass(passes_of(run, compilation(run, args[0])), *args[1:]) if args[1:] else compilation(
            run, *args
        )
    return f"{raised.value.problem}\n{raised.value.remedy}"


@pytest.mark.parametrize(
    ("kernel", "number"), [("softmax", 2), ("01hash", 1), ("matmul#2", 1), ("matmul#1", 0)]
)
def test_a_kernel_is_selected_by_name_by_hash_or_by_number(run: store.Run, kernel: str, number: int) -> None:
    assert compilation(run, kernel).id == number


def test_an_ambiguous_kernel_is_refused_with_the_differences_between_its_configurations(
    run: store.Run,
) -> None:
    message = problem("matmul", run=run)

    assert "matmul means 2 kernels" in message
    assert "--kernel matmul#1  00hash of ma  num_warps=4" in message
    assert "--kernel matmul#2  01hash of ma  num_warps=8" in message


def test_an_ambiguous_name_means_the_only_compilation_that_was_launched(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    first, second = (compiled(writer, "add", DOT, number=number) for number in range(2))
    one = launch(0, name="add")
    add(writer, [replace(one, kernel=replace(one.kernel, hash=second.hash))])
    run = store.Run(writer.path)

    assert compilation(run, "add").hash == second.hash
    assert compilation(run).hash == second.hash
    assert [one.hash for one in other_namesakes(run, "add", second)] == [first.hash]


def test_of_several_compilations_the_one_that_did_not_end_is_meant_where_a_crash_is_asked_for(
    tmp_path: Path,
) -> None:
    writer = new_run(tmp_path)
    launched = compiled(writer, "add", DOT, ("ttir", "cse", MMA))
    died = compiled(writer, "dot", DOT, ("ttir", "cse", None), number=1)
    one = launch(0, name="add")
    add(writer, [replace(one, kernel=replace(one.kernel, hash=launched.hash))])
    run = store.Run(writer.path)

    assert compilation(run).hash == launched.hash
    assert compilation(run, crashed=True).hash == died.hash
    assert compilation(run, "add", crashed=True).hash == launched.hash


def test_compilations_of_one_name_are_named_as_they_were_launched(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    made = [compiled(writer, "triton_", DOT, number=number) for number in range(2)]
    launches = [launch(0, name="triton_poi_fused_sin_0"), launch(1, name="triton_red_fused_sum_1")]
    add(
        writer,
        [
            replace(one, kernel=replace(one.kernel, hash=compilation.hash))
            for one, compilation in zip(launches, made, strict=True)
        ],
    )
    run = store.Run(writer.path)

    assert compilation(run, "triton_red_fused_sum_1").hash == made[1].hash
    assert [label(compilations(run), one) for one in compilations(run)] == [
        "triton_poi_fused_sin_0",
        "triton_red_fused_sum_1",
    ]


def test_configurations_that_differ_only_in_constants_are_distinguished_by_them(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    for number, block in enumerate(("64", "128")):
        compiled(writer, "add", DOT, number=number, constants={"BLOCK": block}, num_warps="4")

    message = problem("add", run=store.Run(writer.path))

    assert "BLOCK=64" in message
    assert "num_warps" not in message


def test_an_unknown_kernel_is_answered_with_near_names(run: store.Run) -> None:
    assert "has no kernel sotfmax\nnearest: softmax" in problem("sotfmax", run=run)


def test_a_run_of_several_kernels_has_no_default_kernel(run: store.Run) -> None:
    with pytest.raises(Problem, match="has passes of 3 kernels"):
        compilation(run)


def test_a_run_without_passes_is_refused_with_how_to_record_them(tmp_path: Path) -> None:
    assert "has no compiler passes" in problem("add", run=store.Run(new_run(tmp_path).path))


def test_a_kernel_compiled_by_two_processes_is_listed_once(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    for process in range(2):
        other = store.RunWriter(writer.path, rank=process)
        compiled(other, "add", DOT, ("ttir", "cse", DOT), ("ttgir", "accelerate", MMA))
    run = store.Run(writer.path)

    assert len(compilations(run)) == 1
    assert [one.name for one in passes_of(run, compilation(run))] == ["cse", "accelerate"]


def test_a_label_means_its_own_compilation(run: store.Run) -> None:
    known = compilations(run)

    assert [compilation(run, label(known, one)) for one in known] == known


@pytest.mark.parametrize(
    ("which", "stage", "index"), [("1", None, 1), ("cse#2", None, 2), ("cse", "ttgir", 2)]
)
def test_a_pass_is_selected_by_index_by_name_and_by_stage(
    run: store.Run, which: str, stage: str | None, index: int
) -> None:
    assert find_pass(passes_of(run, compilation(run, "matmul#1")), which, stage).index == index


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("cse",), "cse ran 2 times\nchoose one:\n  cse#1  index 0, ttir, changed nothing\n  cse#2  index 2"),
        (("acelerate",), "this kernel has no pass acelerate\nnearest: accelerate"),
        (("7",), "this kernel has no pass 7\nthere are 0 to 2"),
        (("0", "ttgir"), "this kernel has no pass 0 in stage ttgir\nthere are 1 to 2"),
        (("0", "ptx"), "this kernel has no pass of stage ptx\nstages: ttir, ttgir"),
        (("cse#3",), "this kernel has no pass cse#3\nnearest: cse"),
    ],
)
def test_an_unknown_pass_is_refused_with_similar_ones(
    run: store.Run, args: tuple[str, ...], message: str
) -> None:
    assert message in problem("matmul#1", *args, run=run)


def test_the_pass_that_a_process_died_in_is_the_unfinished_one(run: store.Run) -> None:
    assert [(one.compilation.kernel_name, one.name) for one in unfinished_passes(run)] == [
        ("softmax", "pipeline")
    ]


def test_a_kernel_in_numbers_counts_only_passes_that_ended_as_changing(run: store.Run) -> None:
    counted = [(one.count, one.changed, one.wall_ms) for one in kernel_passes(run)]

    assert counted == [(3, 1, 4.5), (1, 0, 1.5), (2, 1, 1.5)]


def test_the_history_of_an_operation_names_the_pass_that_removed_it(run: store.Run) -> None:
    changes = history(steps(run, passes_of(run, compilation(run, "matmul#1"))), {"tt.dot"})

    assert [(one.record.name, one.before, one.after) for one in changes] == [
        ("accelerate", {"tt.dot": 1}, {})
    ]


def test_a_pass_that_did_not_end_is_no_end_of_an_operation(run: store.Run) -> None:
    taken = steps(run, passes_of(run, compilation(run, "softmax")))

    assert history(taken, {"ttng.warp_group_dot"})[-1].record.name == "cse"
