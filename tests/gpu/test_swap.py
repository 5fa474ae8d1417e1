"""On a GPU: kernels replaced with another configuration, another source, and Triton's interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from commands import DATA
from data.pipeline import shift
from recorded.runs import in_two_blocks, recorded, words

from tracing.cli.narrow.swap import VersionOption, swapped
from tracing.launch.kernel_module import kernel_module
from tracing.model import Outcome, Replacement
from tracing.replay.launch_swaps import Swaps

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("options", ["", ":direct=false"])
def test_a_block_size_that_changes_the_order_of_a_sum_is_blamed_by_its_configuration(
    options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = in_two_blocks(tmp_path, options)

    assert swapped(a, b, VersionOption.configuration, each_launch=False) == 1

    printed = words(capsys.readouterr().out)
    assert "total #0 output differs BLOCK 256 → 16" in printed
    assert "launched alike in both runs: double" in printed


def test_kernels_that_inductor_compiled_in_its_workers_are_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = DATA / "generated.py"
    a, b = (recorded(f"{case}{options}", tmp_path) for options in ("", ":added=2.0,factor=5,block=32"))

    assert swapped(a, b, None, each_launch=False) == 1

    printed = words(capsys.readouterr().out)
    assert "triton_poi_fused_add_relu_0 #0 output differs source" in printed
    assert "scale #1 output differs FACTOR 5 → 3, BLOCK 32 → 16, grid (2, 1, 1) → (3, 1, 1)" in printed


def test_a_kernel_that_its_compiler_makes_round_is_blamed_by_interpreting_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = DATA / "rounded_dot.py"
    a, b = (recorded(f"{case}:precision={name}", tmp_path) for name in ("ieee", "tf32"))
    assert [next(run.records(Outcome)).status for run in (a, b)] == ["passed", "differs"]

    assert swapped(a, b, VersionOption.eager, each_launch=False) == 1

    printed = words(capsys.readouterr().out)
    assert "2 kernels replaced: every result agrees with eager" in printed
    assert "to blame: 1 of 2 kernels" in printed
    assert "dot #0 output: Tensor-likes are not close!" in printed


def test_an_interpreted_launch_leaves_what_it_writes_on_the_gpu() -> None:
    x = torch.arange(32.0, device="cuda")
    module = kernel_module(shift)
    assert module is not None
    text = f"{module.text}CONSTANTS = {{'STEP': 5, 'BLOCK': 16}}\nOPTIONS = {{'num_warps': 4}}\n"

    with Swaps() as swaps:
        swaps.choose({"shift": {1: Replacement(text, (1, 1, 1), "", (1, 1, 1), eager=True)}})
        for _ in range(2):
            shift[(1,)](x, x[16:], STEP=1, BLOCK=16)

    assert x.tolist() == [*range(16), *range(5, 21)]
