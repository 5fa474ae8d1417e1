"""What is recorded of a frame that does not compile."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from handmade.records import new_run
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tracing.model import FrameCompile, GraphBreak
from tracing.record.graphs.frame_compiles import frame_compiles_recorded
from tracing.store import Run


@triton.jit
def uneven(x):
    y = tl.arange(0, 16) + tl.arange(0, 32)
    tl.store(x + tl.arange(0, 32), y)


def test_a_failed_compile_names_the_line_of_the_kernel_that_triton_refuses(tmp_path: Path) -> None:
    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        return triton.compile(ASTSource(uneven, {"x": "*i32"}), target=GPUTarget("cuda", 90, 32))

    writer = new_run(tmp_path)
    with frame_compiles_recorded(writer), pytest.raises(Exception, match="incompatible dimensions"):
        torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    writer.close()

    (frame,) = Run(writer.path).records(FrameCompile)
    line = uneven.fn.__code__.co_firstlineno + 2
    code = "y = tl.arange(0, 16) + tl.arange(0, 32)"
    assert frame.raised and "kernel uneven does not compile" in frame.eager
    assert frame.breaks == (GraphBreak(frame.eager, f"test_failed_compiles.py:{line}", code),)
