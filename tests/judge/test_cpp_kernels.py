"""Kernels that Inductor writes in C++ are judged as its Triton kernels are."""

from __future__ import annotations

from pathlib import Path

import torch
from judged_programs import values
from planted_kernels import Program, judgement, launches, recorded, virtual_gpu
from test_judged_kernels import chained

from tracing.upstream.inductor.config import settings_changed


def test_every_cpp_kernel_of_a_right_program_is_right(tmp_path: Path) -> None:
    program = Program(chained, lambda: (values(8, 8), values(8, 8, g=1)))
    with virtual_gpu() as device, settings_changed({"cpu_backend": "cpp"}):
        run = recorded(program, tmp_path, device)

    assert {one.kernel.kind for one in launches(run)} == {"cpp"}
    assert [one.verdict for one in judgement(run).launches] == ["right"] * 3


def with_a_diagonal(x: torch.Tensor) -> torch.Tensor:
    written = torch.zeros(4, 4)
    written.diagonal().copy_(x.sin())
    return written


def test_memory_that_one_kernel_writes_twice_is_judged_as_it_leaves_it(tmp_path: Path) -> None:
    with virtual_gpu() as device, settings_changed({"cpu_backend": "cpp"}):
        said = judgement(recorded(Program(with_a_diagonal, lambda: (values(4),)), tmp_path, device))

    assert [one.verdict for one in said.launches] == ["right"]


def sums(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    own = x.sum()
    torch._dynamo.graph_break()
    return own, (x.exp() @ x).sum()


def test_equal_code_of_two_graphs_is_judged_in_both(tmp_path: Path) -> None:
    with virtual_gpu() as device, settings_changed({"cpu_backend": "cpp"}):
        run = recorded(Program(sums, lambda: (values(4, 4),)), tmp_path, device)

    names = [one.kernel_name for one in launches(run)]
    assert names == ["cpp_fused_sum_0", "cpp_fused_exp_0", "cpp_fused_sum_1"]
    assert [one.verdict for one in judgement(run).launches] == ["right"] * 3
