"""Attention: by its parts, with the roundings of a kernel, and with the weights that it dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor
import torch.nn.functional as F
from judged_programs import values
from planted_kernels import Program, judgement, recorded
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.traced.drawn_numbers import DrawnNumbers
from tracing.judge.traced.given_numbers import GivenNumbers, OtherNumbers
from tracing.program.device import Device
from tracing.store.graph_file import FxGraph, FxNode
from tracing.upstream.torch.attention_parts import attention

aten = torch.ops.aten
HALVES = (torch.bfloat16, torch.float16)
DTYPES = (*HALVES, torch.float32)


def heads(dtype: torch.dtype) -> Callable[[], list[torch.Tensor]]:
    return lambda: [values(2, 2, 40, 16, dt=dtype, g=g).requires_grad_() for g in range(3)]


def causal(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(x, y, z, is_causal=True)


def saturated(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    # a row has one weight, whose gradient is a difference of equal numbers
    return F.scaled_dot_product_attention(x * 30, y, z).sin()


def masked(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(x, y, z, x @ y.mT)


def chosen(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return causal(x, y, z)


def checkpointed(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return torch.utils.checkpoint.checkpoint(causal, x, y, z, use_reentrant=False).sin()


def mapped(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return torch.vmap(causal)(x, y, z)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", [causal, saturated, masked, chosen, checkpointed, mapped])
def test_right_attention_is_right(
    function: Callable[..., Any], dtype: torch.dtype, device: Device, tmp_path: Path
) -> None:
    said = judgement(recorded(Program(function, heads(dtype), backward=True), tmp_path, device))

    assert (said.status, said.findings, said.not_covered) == (0, (), ())


def larger_by(factor: float, operator: Any) -> Callable[[torch.fx.Graph], None]:
    """A joint pass that multiplies the second result of an operator."""

    def change(graph: torch.fx.Graph) -> None:
        backward = graph.find_nodes(op="call_function", target=operator)
        gradients = [one for node in backward for one in node.users if one.args[1] == 1]
        for gradient in gradients:
            with graph.inserting_after(gradient):
                larger = graph.call_function(aten.mul.Tensor, (gradient, factor))
            larger.meta["val"] = gradient.meta["val"]
            gradient.replace_all_uses_with(larger, lambda user, larger=larger: user is not larger)

    return change


def soft_capped(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 80, 80, device=x.device)
    return flex_attention(x, y, z, lambda score, *_: 5 * torch.tanh(score / 5), mask).cos()


def saturated_scores(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    # one weight of a row is 1: the kernel that computes what its gradients have in common rounds nothing
    return flex_attention(x * 60, y, z).sin()


def in_bfloat16(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    with torch.autocast(x.device.type, torch.bfloat16):
        return flex_attention(x, y, z)


def long_heads(dtype: torch.dtype) -> Callable[[], list[torch.Tensor]]:
    return lambda: [values(1, 2, 80, 16, dt=dtype, g=g).requires_grad_() for g in range(3)]


@pytest.mark.parametrize(
    ("function", "dtype"),
    [(soft_capped, torch.bfloat16), (saturated_scores, torch.bfloat16), (in_bfloat16, torch.float32)],
)
def test_right_flex_attention_is_right(
    function: Callable[..., Any], dtype: torch.dtype, device: Device, tmp_path: Path
) -> None:
    said = judgement(recorded(Program(function, long_heads(dtype), backward=True), tmp_path, device))

    assert (said.status, said.findings) == (0, ())
    by_dynamo = [one for one in said.not_covered if "Dynamo" in one]
    assert not [one for one in by_dynamo if "rounding of its larger elements" not in one]  # of a few


def test_gradients_of_flex_attention_that_are_a_little_wrong_are_found(
    device: Device, tmp_path: Path
) -> None:
    change = larger_by(1.06, torch.ops.higher_order.flex_attention_backward)
    program = Program(soft_capped, long_heads(torch.bfloat16), backward=True)
    with inductor.patch(joint_custom_post_pass=change, force_disable_caches=True):
        said = judgement(recorded(program, tmp_path, device))

    [finding] = said.findings
    assert finding.wrong.name == "gradient of input 1"


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_gradients_of_attention_in_16_bits_that_are_a_little_wrong_are_found(
    dtype: torch.dtype, device: Device, tmp_path: Path
) -> None:
    with_larger_gradients = larger_by(1.06, aten._scaled_dot_product_flash_attention_for_cpu_backward.default)

    with inductor.patch(joint_custom_post_pass=with_larger_gradients, force_disable_caches=True):
        said = judgement(recorded(Program(causal, heads(dtype), backward=True), tmp_path, device))

    assert [one.wrong.name for one in said.findings] == ["gradient of input 1"]


def test_gradients_of_a_checkpoint_whose_operator_saves_its_state_are_judged(
    device: Device, tmp_path: Path
) -> None:
    def with_sin(graph: torch.fx.Graph) -> None:
        for node in graph.find_nodes(op="call_function", target=aten.cos.default):
            node.target = aten.sin.default

    one = Program(checkpointed, heads(torch.float32), backward=True)
    with inductor.patch(joint_custom_post_pass=with_sin, force_disable_caches=True):
        said = judgement(recorded(one, tmp_path, device))

    assert {one.wrong.name for one in said.findings} >= {"gradient of input 0"}


def kept() -> DrawnNumbers:
    weights = torch.rand(2, 2, 40, 40) > 0.3
    return DrawnNumbers("aten::_scaled_dot_product_flash_attention", [0.3], weights, None, ())


def test_attention_by_its_parts_drops_the_weights_that_a_kernel_dropped() -> None:
    x, y, z = heads(torch.float32)()
    drawn = kept()
    with GivenNumbers([drawn]) as numbers:
        own = attention(x, y, z, dropout_p=0.3)
        numbers.require_all_drawn()

    weights = (x @ y.mT / 4).softmax(-1) * drawn.value / 0.7
    assert torch.allclose(own, weights @ z, atol=1e-5)


@pytest.mark.parametrize("size", [40, 39])
def test_weights_of_another_chance_or_size_are_not_dropped(size: int) -> None:
    x, y, z = heads(torch.float32)()
    with pytest.raises(OtherNumbers), GivenNumbers([kept()]):
        attention(x[:, :, :size], y, z, dropout_p=0.3 if size < 40 else 0.2)


@pytest.mark.parametrize("chance", [0.0, 0.5])
def test_the_state_of_a_generator_that_draws_nothing_has_no_value(chance: float) -> None:
    tensors = [{"node": one} for one in "qkv"]
    attended = FxNode(
        "attended", "call_function", "aten::_scaled_dot_product_efficient_attention",
        [*tensors, None, True, chance],
    )  # fmt: skip
    parts = [
        FxNode(f"part_{i}", "call_function", "_operator.getitem", [{"node": "attended"}, i]) for i in range(4)
    ]
    inputs = [FxNode(one, "placeholder", one) for one in "qkv"]

    program = FxProgram(FxGraph([*inputs, attended, *parts], []))

    assert program.undetermined == (set() if chance else {"part_2", "part_3"})
