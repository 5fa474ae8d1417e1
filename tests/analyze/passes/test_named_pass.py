"""A misspelt pass or stage is reported with the nearest names, before one of several kernels is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.records import compiled, new_run

from tracing import store
from tracing.analyze.passes.named_pass import require_in_a_kernel, require_named
from tracing.errors import Problem

IR = '%0 = tt.dot %a, %b : f32 loc("k.py":1:1)\n'


@pytest.fixture
def run(tmp_path: Path) -> store.Run:
    """Two kernels; only the second has a pass of TTGIR."""
    writer = new_run(tmp_path)
    compiled(writer, "matmul", IR, ("ttir", "cse", IR))
    compiled(writer, "softmax", IR, ("ttir", "cse", IR), ("ttgir", "coalesce", IR), number=1)
    return store.Run(writer.path)


@pytest.mark.parametrize(
    ("args", "problem", "remedy"),
    [
        ((None, "coalese"), "the 2 kernels have no pass coalese", "nearest: coalesce"),
        ((None, "cse", "tgir"), "the 2 kernels have no pass of stage tgir", "stages: ttir, ttgir"),
        ((None, None, "tgir"), "the 2 kernels have no pass of stage tgir", "stages: ttir, ttgir"),
        ((None, "7"), "the 2 kernels have no pass 7", "there are 0 to 1"),
        ((None, "coalesce"), "has passes of 2 kernels", "choose one:"),
        (("matmul", "coalesce"), "this kernel has no pass coalesce", "nearest: cse"),
        (("matmul", None, "ttgir"), "this kernel has no pass of stage ttgir", "stages: ttir"),
    ],
)
def test_a_pass_that_no_kernel_has_is_reported_before_a_kernel_is_asked_for(
    run: store.Run, args: tuple[str | None, ...], problem: str, remedy: str
) -> None:
    with pytest.raises(Problem) as raised:
        require_named(run, *args)

    assert problem in raised.value.problem and remedy in raised.value.remedy


def test_a_pass_of_two_runs_is_one_that_a_kernel_of_either_has(run: store.Run) -> None:
    require_in_a_kernel([run, run], "coalesce", None)
    require_named(run, None, None, "ttgir")

    with pytest.raises(Problem, match="the kernels have no pass coalese"):
        require_in_a_kernel([run, run], "coalese", None)
