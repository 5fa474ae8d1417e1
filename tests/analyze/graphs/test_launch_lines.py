"""Each launch of compiled code is traced to the lines of Python that it computes."""

from __future__ import annotations

from pathlib import Path

import torch
import triton
import triton.language as tl
from handmade.records import INFO

from tracing import store
from tracing.analyze.graphs.launch_lines import launch_lines
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu


@triton.jit
def double(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) * 2)


def program(x: torch.Tensor) -> torch.Tensor:
    x = torch.nn.functional.softmax(x.sin(), 0)
    y, z = torch.empty_like(x), torch.empty_like(x)
    double[(1,)](x, y, BLOCK=64)
    moved = y.sin().flip(0)
    double[(1,)](moved, z, BLOCK=64)
    return z.cos()


def test_a_launch_computes_lines_of_the_program_and_none_of_torch(tmp_path: Path) -> None:
    torch.compiler.reset()
    writer = store.create(tmp_path, INFO)
    with virtual_gpu(), LaunchRecorder(writer):
        torch.compile(program)(torch.rand(64))
        double[(1,)](torch.rand(64), torch.zeros(64), BLOCK=64)
    writer.close()
    run = store.Run(writer.path)

    launches = [*run.launches()]
    lines = [{line.code for line in launch_lines(run, 0, one)} for one in launches]

    assert [one.kernel_name == "double" for one in launches] == [False, True, False, True, False, True]
    assert "x = torch.nn.functional.softmax(x.sin(), 0)" in lines[0]
    assert {line.file for one in launches for line in launch_lines(run, 0, one)} == {__file__}
    assert lines[1] == {"double[(1,)](x, y, BLOCK=64)"}
    assert "moved = y.sin().flip(0)" in lines[2]
    assert lines[3] == {"double[(1,)](moved, z, BLOCK=64)"}
    assert "return z.cos()" in lines[4]
    assert lines[-1] == set()  # launched by hand
