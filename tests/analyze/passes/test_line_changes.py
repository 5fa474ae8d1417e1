"""What became of a Python line: the kernel that computes it, and the passes that changed its operations."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from handmade.records import INFO, compiled, new_run

from tracing import store
from tracing.analyze.graphs.line_kernels import line_kernels
from tracing.analyze.passes.line_changes import changing_passes
from tracing.errors import Problem
from tracing.record.launches.launch_recorder import LaunchRecorder
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
