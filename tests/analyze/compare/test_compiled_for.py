"""Code that the program's launches change is no fault of the compiler: options, alignment of pointers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from commands import tracing as command

import tracing
from tracing.analyze.compare.divergence_kinds import LaunchDiffers
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.analyze.passes.compared_compilations import CompilationComparer
from tracing.analyze.passes.compilations import compilations
from tracing.report.passes.pass_pairs import kernels_table
from tracing.store import Run


@triton.jit
def square(x_ptr, y_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, x * x + x)


def recorded(launch: Callable[[torch.Tensor, torch.Tensor], Any], runs: Path, *, passes: bool = True) -> Run:
    square.device_caches.clear()  # the passes of a kernel are recorded with its compilation
    memory = torch.ones(300)
    with tracing.recording(runs=runs, passes=passes) as run:
        launch(memory, torch.zeros(256))
    return run


@pytest.mark.parametrize(
    ("other", "change"),
    [
        (lambda x, y: square[(1,)](x[:256], y, BLOCK=256, maxnreg=64), ("maxnreg", "None", "64")),
        (
            lambda x, y: square[(1,)](x[:256], y, BLOCK=256, enable_fp_fusion=False),
            ("enable_fp_fusion", "True", "False"),
        ),
        (lambda x, y: square[(1,)](x[1:257], y, BLOCK=256), ("divisibility of x_ptr", "16", "not known")),
    ],
    ids=["registers", "fusion", "alignment"],
)
@pytest.mark.parametrize("passes", [True, False])
def test_the_program_launches_the_kernel_differently(
    other: Callable[[torch.Tensor, torch.Tensor], Any],
    change: tuple[str, str, str],
    passes: bool,
    tmp_path: Path,
) -> None:
    a = recorded(lambda x, y: square[(1,)](x[:256], y, BLOCK=256), tmp_path / "a", passes=passes)
    b = recorded(other, tmp_path / "b", passes=passes)

    (divergence,) = ComparisonVerdict.of(a, b, 1000)

    assert isinstance(divergence, LaunchDiffers)
    assert (divergence.changes, divergence.code) == ((change,), None)


def test_passes_name_the_attribute_that_an_option_sets(tmp_path: Path) -> None:
    a = recorded(lambda x, y: square[(1,)](x[:256], y, BLOCK=256), tmp_path / "a")
    b = recorded(lambda x, y: square[(1,)](x[:256], y, BLOCK=256, maxnreg=64), tmp_path / "b")

    printed = command("passes", str(a.path), str(b.path), "--kernel", "square", runs=tmp_path).stdout

    assert "ttgir, llir, ptx differ: after the passes only attributes, as listed below, differ\n" in printed
    assert "attribute ttg.maxnreg: none | 64 : i32, since convert-triton-to-tritongpu" in printed
    compared = CompilationComparer(a, b).compared(compilations(a)[0], compilations(b)[0])
    listed = [str(line) for line in kernels_table([("square", compared)])]
    assert "in attributes only; ttgir, llir, ptx differ" in listed[-1]
