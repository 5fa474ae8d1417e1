"""Kernels that Inductor writes in C++ are judged as its Triton kernels are."""

from __future__ import annotations

from pathlib import Path

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
