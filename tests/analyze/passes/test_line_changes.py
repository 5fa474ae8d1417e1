"""What became of a Python line: the kernel that computes it, and the passes that changed its operations."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO, compiled, new_run

from tracing import store
from tracing.analyze.graphs.launch_lines import launch_lines
from tracing.analyze.graphs.line_kernels import compiled_lines, line_kernels, without_line
from tracing.analyze.passes.line_changes import (
    changing_passes,
    compilation_of_line,
    follow_line,
    is_of_model,
)
from tracing.analyze.passes.locations import located
from tracing.analyze.passes.source_map import StageLines, follow, stage_lines
from tracing.errors import Problem
from tracing.model import CompiledGraph
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.passes.derivation import derive
from tracing.record.passes.recorder import PassRecorder
from tracing.report.passes.passes import stages_text
from tracing.store.graph_file import FxGraph, FxNode, PythonLine, Schedule, ScheduledCall, ScheduleStep
from tracing.virtual_gpu import virtual_gpu

LOADED = '%0 = tt.load %p : f32 loc("k.py":3:1)'
ADDED = '%1 = arith.addf %0, %0 : f32 loc("k.py":4:1)'
RENUMBERED = '%7 = arith.addf %6, %6 : f32 loc("k.py":4:1)'
ALIASED = '#wide = #ttg.blocked<[4]>\n%1 = arith.addf %0, %0 : f32, #wide loc("k.py":4:1)'
OTHER_NAME = '#w = #ttg.blocked<[4]>\n%1 = arith.addf %0, %0 : f32, #w loc("k.py":4:1)'


def text(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_a_pass_that_changes_a_line_is_one_that_changes_its_operations(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    kernel = compiled(
        writer, "add", text(LOADED, ADDED),
        ("ttir", "renumber", text(LOADED, RENUMBERED)),
        ("ttir", "unload", text(RENUMBERED)),
        ("ttgir", "widen", text(ALIASED)),
        ("ttgir", "rename", text(OTHER_NAME)),
        ("ttgir", "drop", text(LOADED)),
    )  # fmt: skip
    writer.close()
    run = store.Run(writer.path)

    assert [one.name for one in changing_passes(run, kernel, "k.py:4")] == ["widen", "drop"]
    assert [one.name for one in changing_passes(run, kernel, "k.py:3")] == ["unload", "drop"]
    with pytest.raises(Problem, match="nothing of add comes from"):
        changing_passes(run, kernel, "k.py:9")


def squared(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    return torch.nn.functional.softmax(y * y, 0)


def test_a_line_of_a_model_is_computed_by_the_kernel_that_inductor_made_of_it(tmp_path: Path) -> None:
    torch.compiler.reset()
    writer = store.create(tmp_path, INFO)
    with virtual_gpu(), LaunchRecorder(writer):
        torch.compile(squared)(torch.rand(64))
    writer.close()
    run = store.Run(writer.path)
    first = squared.__code__.co_firstlineno
    (kernel,) = {one.kernel_name for one in run.launches()}

    assert line_kernels(run, f"{Path(__file__).name}:{first + 1}") == {kernel: ("sin",)}
    assert "mul" in line_kernels(run, f"{__file__}:{first + 2}")[kernel]
    assert line_kernels(run, f"{__file__}:{first}") == {}


def with_flex_attention(writer: store.RunWriter, in_mask: PythonLine) -> store.Run:
    """A run whose kernel flex_0 computes a mask_mod that is called in line 9; its operator has this line."""
    mask = FxGraph([FxNode("ge", "call_function", "aten::ge", line=0)], [[in_mask]])
    called = FxNode("mask", "get_attr", "mask", graph=mask, line=0)
    graph = FxGraph([called], [[PythonLine("m.py", 9, "f", "")]])
    steps = Schedule([], [], [ScheduleStep("kernel", [], [], ["mask"], [ScheduledCall("flex_0", [])])], {})
    blobs = [writer.blob(msgspec.json.encode(one)) for one in (graph, steps)]
    writer.append(CompiledGraph(0, "0/0", "forward", "", "", "", blobs[0], "", blobs[1]))
    writer.close()
    return store.Run(writer.path)


def test_a_line_of_a_mask_mod_is_computed_by_the_kernel_of_its_flex_attention(tmp_path: Path) -> None:
    run = with_flex_attention(new_run(tmp_path), PythonLine("m.py", 6, "causal", ""))

    assert line_kernels(run, "m.py:6") == {"flex_0": ("mask",)}
    assert compiled_lines(run) == {("m.py", 6), ("m.py", 9)}
    assert without_line(run) == []


def test_no_line_is_denied_where_torch_kept_only_the_line_that_calls_a_score_mod(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    kernel = compiled(writer, "flex_0", text(LOADED))
    run = with_flex_attention(writer, PythonLine("m.py", 9, "f", ""))
    stages = [StageLines("ttir", located("ttir", text(LOADED)))]

    for asked in (
        lambda: compilation_of_line(run, None, "m.py:6"),
        lambda: follow_line(run, kernel, stages, "m.py:6"),
        lambda: changing_passes(run, kernel, "m.py:6"),
    ):
        with pytest.raises(Problem, match="is not known: torch kept no line of mask"):
            asked()
    assert without_line(run, "other_0") == []


@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def doubling(x_ptr, y_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at) * 2)


def doubled(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    doubling[(1,)](x, y, 16, BLOCK=16)
    return y + 1


def test_the_line_that_launches_a_kernel_of_the_program_in_compiled_code_is_that_kernel(
    tmp_path: Path,
) -> None:
    torch.compiler.reset()
    writer = store.create(tmp_path, INFO)
    with virtual_gpu(), PassRecorder(writer), LaunchRecorder(writer):
        torch.compile(doubled)(torch.rand(16))
    derive(writer.path)
    writer.close()
    run = store.Run(writer.path)
    launching = f"{__file__}:{doubled.__code__.co_firstlineno + 2}"
    kernel = compilation_of_line(run, None, launching)

    assert kernel.kernel_name == "doubling" and is_of_model(run, kernel, launching)
    threads = follow_line(run, kernel, stage_lines(run, kernel, None), launching)
    assert len({frame.line for one in threads for frame in one.stack}) > 1
    (launch, *_) = run.launches()
    (line,) = launch_lines(run, 0, launch)
    assert f"{line.file}:{line.line}" == launching


def test_a_line_of_a_model_is_distinguished_from_one_of_the_kernel(tmp_path: Path) -> None:
    torch.compiler.reset()
    writer = store.create(tmp_path, INFO)
    with virtual_gpu(), LaunchRecorder(writer):
        torch.compile(squared)(torch.rand(32))
    (name,) = {one.kernel_name for one in store.Run(writer.path).launches()}
    kernel = compiled(writer, name, text(LOADED, ADDED))
    writer.close()
    run, first = store.Run(writer.path), squared.__code__.co_firstlineno
    fused = [f"{__file__}:{first + 1}", f"{__file__}:{first + 2}"]

    assert [is_of_model(run, kernel, line) for line in (*fused, "k.py:4")] == [True, True, False]


@pytest.mark.parametrize("of_model", [True, False])
def test_a_count_of_a_whole_kernel_is_not_called_one_of_a_line(of_model: bool) -> None:
    stages = [StageLines("ttir", located("ttir", text(LOADED, ADDED)))]

    table = "\n".join(map(str, stages_text(stages, follow(stages, "k.py:4"), of_model=of_model)))

    assert ("from this line" not in table) == of_model
    assert ("is a part of the kernel" in table) == of_model
