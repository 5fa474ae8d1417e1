"""The case flex_attention: the operators that replace it without a GPU, and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor
from commands import tracing
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from tracing.errors import Problem
from tracing.program.case import CASES, import_file, load_case
from tracing.upstream.inductor.generated_kernels import kernels_written
from tracing.virtual_gpu import virtual_gpu

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


@pytest.mark.parametrize(
    ("queries", "keys", "dtype", "backward"),
    [
        (128, 128, torch.float32, True),
        pytest.param(4, 160, torch.float32, False, marks=pytest.mark.soak),
        pytest.param(100, 150, torch.float16, True, marks=pytest.mark.soak),
        pytest.param(256, 384, torch.bfloat16, True, marks=pytest.mark.soak),
    ],
    ids=["one block", "decode", "no whole blocks", "several blocks, bf16"],
)
@pytest.mark.parametrize(
    "target",
    ["sm_90", pytest.param("gfx942", marks=pytest.mark.soak), pytest.param("sm_80", marks=pytest.mark.soak)],
)
def test_torchs_templates_agree_with_eager_on_the_virtual_gpu(
    target: str, queries: int, keys: int, dtype: torch.dtype, backward: bool
) -> None:
    names: set[str] = set()
    torch.manual_seed(0)
    sizes = (1, 2, queries, 16), (1, 2, keys, 16), (1, 2, keys, 16)
    tensors = [torch.randn(size, dtype=dtype, requires_grad=backward) for size in sizes]
    with virtual_gpu(target):
        blocks = create_block_mask(
            lambda b, h, q, k: q >= k - keys + queries, None, None, queries, keys, "cpu"
        )

        def attention(function: Any) -> list[torch.Tensor]:
            result = function(*tensors, score_mod=lambda s, b, h, q, k: s + 0.01 * (q - k), block_mask=blocks)
            gradients = torch.autograd.grad(result.float().square().sum(), tensors) if backward else ()
            return [result.detach(), *gradients]

        written = lambda name, source, nodes: names.add(name)  # noqa: E731
        with inductor.patch(force_disable_caches=True), kernels_written(written):
            actual = attention(torch.compile(flex_attention))
        expected = attention(flex_attention)

    assert sum(name.startswith("triton_tem_fused_flex_") for name in names) == (2 if backward else 1)
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, atol=2e-2 if dtype != torch.float32 else 1e-4, rtol=2e-2)


def test_torch_has_its_own_flex_attention_after_the_virtual_gpu() -> None:
    query = torch.randn(1, 1, 16, 16, requires_grad=True)
    with virtual_gpu():
        pass

    with pytest.raises(NotImplementedError, match="does not support backward on CPU"):
        flex_attention(query, query, query)
