"""Generated code that reuses memory: a part of a pool reads nothing of it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from tracing.launch.reused_buffers import ReusedBuffers

CODE = """
def call(pool0, look):
    buf0 = alloc_from_pool(pool0, 0)
    buf1 = buf0; del buf0  # reuse
    look(buf1)
    buf2 = {later}
    return buf1, buf2
"""


@pytest.mark.parametrize(
    ("later", "names"), [("alloc_from_pool(pool0, 0)", []), ("pool0.sum()", ["pool0"])], ids=["part", "read"]
)
def test_a_part_of_a_pool_is_no_read_of_it(later: str, names: list[str], tmp_path: Path) -> None:
    (path := tmp_path / "generated.py").write_text(CODE.format(later=later))
    pool, seen = torch.zeros(8), list[str]()

    def look(buffer: torch.Tensor) -> None:
        frame: FrameType = sys._getframe(1)
        written = [("out_ptr0", buffer)]
        seen.extend(one.name for one in ReusedBuffers().overwritten(frame, written))

    scope = {"alloc_from_pool": lambda pool, offset: pool[offset : offset + 4]}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    scope["call"](pool, look)

    assert seen == names


@pytest.mark.parametrize(
    "other", [torch._efficientzerotensor((8,)), torch.eye(8).to_sparse()], ids=["zeros", "sparse"]
)
def test_a_tensor_without_memory_is_overwritten_by_no_launch(other: torch.Tensor, tmp_path: Path) -> None:
    (path := tmp_path / "generated.py").write_text(CODE.format(later="other.sum()"))
    seen = list[str]()

    def look(buffer: torch.Tensor) -> None:
        frame: FrameType = sys._getframe(1)
        seen.extend(one.name for one in ReusedBuffers().overwritten(frame, [("out_ptr0", buffer)]))

    scope: dict[str, Any] = {"alloc_from_pool": lambda pool, offset: pool[offset : offset + 4]}
    exec(compile(path.read_text().replace("pool0, look", "pool0, look, other"), str(path), "exec"), scope)
    scope["call"](torch.zeros(8), look, other)

    assert seen == []
