"""The case flex_attention: the operators that replace it without a GPU, and its options."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from commands import tracing
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from tracing.errors import Problem
from tracing.program.case import CASES, import_file, load_case

case = import_file(CASES / "flex_attention.py")


@pytest.mark.parametrize("score", ["none", "alibi"])
@pytest.mark.parametrize("mask", ["full", "causal", "window", "document"])
def test_the_replacing_operators_compute_flex_attention(mask: str, score: str) -> None:
    q, k, v = (torch.randn(2, 2, 32, 16) for _ in range(3))
    mask_mod, score_mod = case.masks(32, 8, 4, "cpu")[mask], case.scores(2, "cpu")[score]
    blocks = create_block_mask(mask_mod, None, None, 32, 32, device="cpu")

    expected = flex_attention(q, k, v, score_mod=score_mod, block_mask=blocks)

    torch.testing.assert_close(case.written_out(q, k, v, score_mod, mask_mod), expected)


def test_options_reach_the_build_with_the_types_of_their_defaults() -> None:
    loaded = load_case("flex_attention:mask=window,tokens=48,dtype=float64,backward=false")

    workload = loaded.build("cpu")
    assert loaded.name == "flex_attention+mask=window,tokens=48,dtype=float64,backward=false"
    assert (workload.args[0].shape[2], workload.args[0].dtype, workload.backward) == (
        48,
        torch.float64,
        False,
    )


@pytest.mark.parametrize(
    ("option", "message"),
    [("maks=full", "has no option maks"), ("tokens=many", "cannot be many"), ("backward=2", "cannot be 2")],
)
def test_an_option_that_is_wrong_is_refused(option: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        load_case(f"flex_attention:{option}")


@pytest.mark.soak
def test_forward_and_backward_repeat_bit_by_bit_without_a_gpu(tmp_path: Path) -> None:
    done = tracing("repeat", "flex_attention:tokens=16", "--times", "2", runs=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "0 of 1 runs" in done.stdout
    assert "read and wrote the same bits" in done.stdout
