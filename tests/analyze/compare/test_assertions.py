"""Kernels whose assertions hold the file and the line of their source are equal in two folders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from recorded.runs import recorded

from tracing.analyze.compare.kernel_code import KernelCodes
from tracing.analyze.passes.assertions import without_positions
from tracing.model import Kernel
from tracing.store import Run, RunWriter

CASE = """import torch
from tracing import Workload

def rows(table, index):
    return torch.sin(table[index]) * 2

def build(device):
    return Workload(rows, (torch.rand(50, 8, device=device), torch.arange(20, device=device)))
"""
MLIR = 'llvm.mlir.global internal constant @assertFile_0("{}\\00") {{addr_space = 0 : i32}} loc(#loc1)\n'
AMD = (
    "llvm.mlir.global internal constant @printfFormat_0("
    "\"device assertion failed: 'a < 3', in k at {}:9\\0A\")\n"
)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, Run]:
    """Inductor's kernel of one case, compiled from two folders with names of two lengths."""
    (case := tmp_path / "rows.py").write_text(CASE)

    def compiled(folder: str) -> Run:
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / folder))
        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / folder / "triton"))
        return recorded(case, tmp_path / "runs")

    return compiled("one"), compiled("another")


def kernels(runs: tuple[Run, Run]) -> tuple[Kernel, Kernel]:
    [a], [b] = (list(run.records(Kernel)) for run in runs)
    return a, b


def edited(run: Run, kernel: Kernel, stage: str, old: str, new: str) -> Kernel:
    text = run.text(kernel.stages[stage])
    assert old in text
    blob = RunWriter(run.path).blob(text.replace(old, new))
    return replace(kernel, stages={**kernel.stages, stage: blob})


def test_an_asserting_kernel_is_equal_in_another_folder(runs: tuple[Run, Run]) -> None:
    a, b = kernels(runs)

    assert a.file != b.file and "@assertFile_0" in runs[0].text(a.stages["llir"])
    assert runs[0].text(a.stages["ptx"]) != runs[1].text(b.stages["ptx"])
    assert KernelCodes(*runs).difference(a, b) is None


@pytest.mark.parametrize(("stage", "old", "new"), [("llir", " fmul ", " fadd "), ("ptx", "50;", "51;")])
def test_another_instruction_of_it_is_a_difference(
    runs: tuple[Run, Run], stage: str, old: str, new: str
) -> None:
    a, b = kernels(runs)

    difference = KernelCodes(*runs).difference(a, edited(runs[1], b, stage, old, new))

    assert difference is not None and difference.stage == stage


@pytest.mark.parametrize(
    ("stage", "text"), [("llir", "@assertFile_0, i32 {},"), ("ptx", "st.param.b32 \t[param2], {};")]
)
def test_the_line_of_an_assertion_is_no_difference(runs: tuple[Run, Run], stage: str, text: str) -> None:
    a, b = kernels(runs)
    pattern = re.escape(text).replace(r"\{\}", r"(\d+)")
    line = re.search(pattern, runs[1].text(b.stages[stage]))

    assert line is not None
    moved = edited(runs[1], b, stage, line[0], text.format(int(line[1]) + 5))
    assert KernelCodes(*runs).difference(a, moved) is None


@pytest.mark.parametrize("text", [MLIR, AMD])
def test_mlir_is_equal_without_the_path(text: str) -> None:
    assert without_positions(text.format("/tmp/a/k.py")) == without_positions(text.format("/tmp/long/k.py"))
    assert without_positions(text.format("/tmp/a/k.py")) != text.format("/tmp/a/k.py")


def test_of_amd_the_llvm_ir_of_an_asserting_kernel_is_not_compared_and_named(runs: tuple[Run, Run]) -> None:
    a, b = (replace(one, target="hip:gfx942") for one in kernels(runs))
    codes = KernelCodes(*runs)

    assert codes.difference(a, edited(runs[1], b, "llir", " fmul ", " fadd ")) is None
    assert codes.notes == [f"the LLVM IR of {a.name}, whose assertions contain a path"]
