"""Results and gradients that depend on random numbers are judged with those that the compiled graph drew."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor
import torch.nn.functional as F
from judged_programs import values
from planted_kernels import Program, judgement, recorded
from torch._inductor.decomposition import select_decomp_table

from tracing.analyze.judge.findings import TracedOff
from tracing.analyze.judge.judgement import RunJudgement
from tracing.judge.traced.drawn_numbers import DrawnNumbers
from tracing.judge.traced.given_numbers import GivenNumbers, OtherNumbers
from tracing.program.device import Device

aten = torch.ops.aten


def inputs() -> list[torch.Tensor]:
    return [values(6, 4, g=g).requires_grad_() for g in range(2)]


def narrow() -> list[torch.Tensor]:
    return [one.detach().bfloat16().requires_grad_() for one in inputs()]


def many() -> list[torch.Tensor]:
    # numbers that bfloat16 rounds to the chance itself are among those of so many elements
    return [values(100, 400, g=g).bfloat16().requires_grad_() for g in range(2)]


def heads() -> list[torch.Tensor]:
    return [values(1, 2, 6, 4, g=g).requires_grad_() for g in range(2)]


def transposed() -> list[torch.Tensor]:
    return [one.detach().mT.requires_grad_() for one in inputs()]


def off(said: RunJudgement) -> set[str]:
    return {one.wrong.name for one in said.findings if isinstance(one, TracedOff)}


def by_dynamo(said: RunJudgement) -> list[str]:
    return [one for one in said.not_covered if "by Dynamo's graph" in one]


DRAWING = {
    "dropout": (lambda x, y: F.dropout(x, 0.3) * y, inputs),
    "dropout twice": (lambda x, y: F.dropout(x, 0.3) * F.dropout(y, 0.6), inputs),
    "dropout in place": (lambda x, y: F.dropout(x + y, 0.3, inplace=True), inputs),
    "dropout of ATen": (lambda x, y: torch.dropout(x, 0.3, True) + aten.dropout(y, 0.6, train=True), inputs),
    "dropout of bfloat16": (lambda x, y: F.dropout(x, 0.3) * y, narrow),
    "dropout of much bfloat16": (lambda x, y: F.dropout(x, 0.5) * y, many),
    "dropout of what is transposed": (lambda x, y: F.dropout(x, 0.3).contiguous() * y, transposed),
    "alpha dropout": (lambda x, y: F.alpha_dropout(x, 0.3, True) * y, inputs),
    "dropout of features": (lambda x, y: F.dropout1d(x, 0.3) * y, inputs),
    "multi-head attention": (
        lambda x, y: F.multi_head_attention_forward(
            x, y, y, 4, 2, None, None, None, None, False, 0.2, torch.eye(4), None, need_weights=False,
            use_separate_proj_weight=True, q_proj_weight=torch.eye(4), k_proj_weight=torch.eye(4),
            v_proj_weight=torch.eye(4),
        )[0],
        inputs,
    ),
    "attention": (lambda x, y: F.scaled_dot_product_attention(x, y, y, dropout_p=0.2), heads),
    "causal attention": (
        lambda x, y: F.scaled_dot_product_attention(x, y, y, dropout_p=0.2, is_causal=True, scale=0.3),
        heads,
    ),
    "grouped attention": (
        lambda x, y: F.scaled_dot_product_attention(x, y[:, :1], x[:, :1], dropout_p=0.2, enable_gqa=True),
        heads,
    ),
    "attention with a mask": (
        lambda x, y: F.scaled_dot_product_attention(x, y, x, (x @ y.mT) > 0, dropout_p=0.2),
        heads,
    ),
    "comparison of bfloat16": (lambda x, y: torch.where(torch.rand_like(x) < 0.3, x, -y), many),
    "bernoulli": (lambda x, y: torch.bernoulli(x.sigmoid()) * y, inputs),
    "exponential": (lambda x, y: F.gumbel_softmax(x) * y, inputs),
    "uniform": (lambda x, y: torch.empty_like(x).uniform_(-1, 2) * y + x, inputs),
    "normal": (lambda x, y: torch.empty_like(x).normal_(1, 2) * y + torch.randn_like(x), inputs),
    "normal of tensors": (
        lambda x, y: torch.normal(x, 2.0) * torch.normal(1.0, y.sigmoid()) + torch.normal(x, x.exp()),
        lambda: [values(6, 4, g=g) for g in range(2)],
    ),
    "geometric": (lambda x, y: torch.empty_like(x).geometric_(0.3) * y + x, inputs),
    "cauchy": (lambda x, y: torch.empty_like(x).cauchy_(0.5, 2) * y + x, inputs),
    "rrelu": (lambda x, y: F.rrelu(x, 0.1, 0.4, training=True) * y, inputs),
    "rrelu of bfloat16": (lambda x, y: F.rrelu(x, training=True) * y, narrow),
    "rrelu in place": (lambda x, y: F.rrelu_(x + y, training=True) * F.rrelu(y, 0.2, 0.3), inputs),
    "multinomial": (lambda x, y: y * torch.multinomial(x.detach().softmax(1), 2).sum(), inputs),
    "normal logarithms": (lambda x, y: torch.empty_like(x).log_normal_(1, 2).log() * y + x, inputs),
    "dropout of a scalar": (lambda x, y: F.dropout(x.sum(), 0.3) * y, inputs),
    "rand": (lambda x, y: torch.rand(6, 4, device=x.device) * x + torch.rand_like(y), inputs),
    "integers": (
        lambda x, y: torch.randint(2, 9, (6, 4), device=x.device) * x + torch.randint_like(y, 5), inputs,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWING)
def test_right_results_and_gradients_with_random_numbers_are_right(
    name: str, device: Device, tmp_path: Path
) -> None:
    function, arguments = DRAWING[name]
    said = judgement(recorded(Program(function, arguments, backward=True), tmp_path, device))

    assert (said.status, said.findings, by_dynamo(said)) == (0, (), [])


def with_cos(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=aten.sin.default):
        node.target = aten.cos.default


@pytest.mark.parametrize("name", DRAWING)
def test_a_wrong_result_with_random_numbers_is_found(name: str, device: Device, tmp_path: Path) -> None:
    function, arguments = DRAWING[name]
    with inductor.patch(joint_custom_post_pass=with_cos, force_disable_caches=True):
        said = judgement(recorded(Program(lambda *xs: function(*xs).sin(), arguments), tmp_path, device))

    assert {one.verdict for one in said.launches} <= {"right", "no reference"}
    assert off(said) == {"output 0"}


def dropped(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.dropout(x, 0.3) * y


def without_scale(x: torch.Tensor, p: float, train: bool) -> tuple[torch.Tensor, torch.Tensor]:
    kept = torch.rand_like(x) > p
    return kept * x, kept


def keeps_the_others(x: torch.Tensor, p: float, train: bool) -> tuple[torch.Tensor, torch.Tensor]:
    kept = torch.rand_like(x) < p
    return kept * x * (1 / (1 - p)), kept


@pytest.mark.parametrize("wrong", [without_scale, keeps_the_others])
def test_a_wrong_decomposition_of_dropout_is_found(
    wrong: Callable[..., Any], device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(select_decomp_table(), aten.native_dropout.default, wrong)
    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(Program(dropped, inputs), tmp_path, device))

    assert off(said) == {"output 0"}


def with_another_scale(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=aten.mul.Tensor):
        mask = getattr(node.args[0], "target", None) is torch.ops.prims.convert_element_type.default
        if mask and node.args[1] == 2.0:
            node.args = (node.args[0], 1.0)


def test_a_wrong_gradient_of_dropout_is_found(device: Device, tmp_path: Path) -> None:
    one = Program(lambda x, y: F.dropout(x, 0.5) * y, inputs, backward=True)
    with inductor.patch(joint_custom_post_pass=with_another_scale, force_disable_caches=True):
        said = judgement(recorded(one, tmp_path, device))

    assert off(said) == {"gradient of input 0"}


def checkpointed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.utils.checkpoint.checkpoint(lambda z: F.dropout(z.sin(), 0.3) * y, x, use_reentrant=False)


@torch.compiler.disable  # type: ignore[untyped-decorator, unused-ignore]
def in_a_checkpoint(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.compile(checkpointed)(x, y)


@torch.compiler.disable  # type: ignore[untyped-decorator, unused-ignore]
def of_two_sizes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    compiled = torch.compile(dropped, dynamic=True)
    return torch.cat([compiled(x, y), compiled(x[:4], y[:4])])


@torch.compiler.disable  # type: ignore[untyped-decorator, unused-ignore]
def attention_of_two_sizes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    function = functools.partial(F.scaled_dot_product_attention, dropout_p=0.2)
    compiled = torch.compile(lambda x, y: function(x, y, y) * x.shape[0], dynamic=True)
    x, y = x.view(1, 2, 3, 4), y.view(1, 2, 3, 4)
    return compiled(x, y).sum() + compiled(x[:, :, :2], y).sum()


def with_sin(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=aten.cos.default):
        node.target = aten.sin.default


@pytest.mark.usefixtures("no_geometric_numbers")
def test_an_operator_whose_numbers_judge_does_not_compute_is_named(device: Device, tmp_path: Path) -> None:
    one = Program(lambda x, y: (torch.empty_like(x).geometric_(0.3) * y, y.sin()), inputs)
    said = judgement(recorded(one, tmp_path, device))

    [line] = by_dynamo(said)
    assert line.startswith("output 0 of graph 0") and "the random numbers of aten::geometric_, which" in line


@pytest.mark.parametrize("function", [in_a_checkpoint, of_two_sizes, attention_of_two_sizes])
def test_recomputed_numbers_and_those_of_any_size_are_known(
    function: Callable[..., Any], device: Device, tmp_path: Path
) -> None:
    said = judgement(recorded(Program(function, inputs, backward=True), tmp_path, device))

    assert (said.status, said.findings, by_dynamo(said)) == (0, (), [])


def test_a_wrong_gradient_of_a_checkpoint_that_draws_is_found(device: Device, tmp_path: Path) -> None:
    with inductor.patch(joint_custom_post_pass=with_sin, force_disable_caches=True):
        said = judgement(recorded(Program(in_a_checkpoint, inputs, backward=True), tmp_path, device))

    assert off(said) == {"gradient of input 0"}


def both(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return F.dropout(x, 0.3), x * y


def without_the_draw(graph: torch.fx.Graph) -> None:
    [random] = graph.find_nodes(op="call_function", target=torch.ops.prims.inductor_random.default)
    with graph.inserting_before(random):
        constant = graph.call_function(aten.full.default, ([6, 4], 0.5), {"dtype": torch.float32})
    constant.meta["val"] = random.meta["val"]
    random.replace_all_uses_with(constant)


def test_results_without_random_numbers_are_judged_if_these_are_not_known(
    device: Device, tmp_path: Path
) -> None:
    with inductor.patch(joint_custom_post_pass=without_the_draw, force_disable_caches=True):
        said = judgement(recorded(Program(both, inputs), tmp_path, device))

    [reason] = by_dynamo(said)
    assert said.findings == () and reason.startswith("output 0 of graph 0") and "random numbers" in reason


@pytest.mark.parametrize(
    ("operators", "reason"),
    [
        (lambda: torch.rand(2, 3), "fewer"),
        (lambda: (torch.rand(2, 3), torch.rand(2, 3)), "two of one size are asked for, one has another"),
        (lambda: (torch.rand(2, 3), torch.rand(3, 3), torch.rand(1)), "more"),
        (lambda: (torch.randn(2, 3), torch.rand(3, 3)), "normal ones"),
        (lambda: (torch.rand(2, 3), torch.multinomial(torch.ones(3), 1)), "no uniform ones"),
        (lambda: (torch.rand(2, 3), torch.empty(3, 3).bernoulli_(0.5)), "compared otherwise"),
    ],
)
def test_numbers_are_given_only_to_the_operators_that_drew_them(
    operators: Callable[[], Any], reason: str
) -> None:
    with pytest.raises(OtherNumbers), GivenNumbers(numbers((2, 3), (3, 3))) as given:
        operators()
        given.require_all_drawn()


def numbers(*shapes: Sequence[int]) -> list[DrawnNumbers]:
    return [
        DrawnNumbers("prims::inductor_random", [one, {"node": "seed"}, "rand"], torch.rand(*one), None, ())
        for one in shapes
    ]


def test_a_program_that_writes_to_its_numbers_leaves_them_for_the_next_execution() -> None:
    known = numbers((2, 3))
    before = known[0].value.clone()
    with GivenNumbers(known):
        drawn = torch.rand(2, 3).mul_(2)

    assert torch.equal(drawn, 2 * before) and torch.equal(known[0].value, before)
