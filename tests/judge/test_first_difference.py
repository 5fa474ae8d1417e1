"""Of a result that is not what Dynamo's graph computes, the node is named from which on it is another one."""

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
from torch._inductor.decomposition import select_decomp_table

from tracing.analyze.judge.findings import TracedOff
from tracing.judge.traced import judged_call
from tracing.judge.traced.first_difference import first_difference
from tracing.numerics.reference import Expected
from tracing.program.device import Device
from tracing.report.judge.judgement import judgement_text
from tracing.store.graph_file import FxGraph, FxNode

aten = torch.ops.aten
Decomposition = Callable[..., Any]


def inputs() -> list[torch.Tensor]:
    return [values(8, 16, g=0), values(8, 16, g=1)]


def layers(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    scores = (x @ y.T).masked_fill(torch.ones(8, 8, device=x.device).triu(1).bool(), -torch.inf)
    mixed = F.hardswish(scores.softmax(-1) @ y + x)
    gated, gate = F.silu(mixed).chunk(2, -1)
    normed = F.group_norm((gated * gate.tanh()).view(1, 8, 8), 4).squeeze(0)
    return F.softplus(normed.T.nan_to_num()), normed.logsumexp(-1)


def other(x: torch.Tensor) -> torch.Tensor:
    return x * (x + 3).clamp(0, 6) / 5


def scaled(decompose: Decomposition) -> Decomposition:
    """Computes the right value first, and passes on another one."""

    def wrong(*args: Any, **kwargs: Any) -> Any:
        right = decompose(*args, **kwargs)
        return (right[0] * 1.01, *right[1:]) if isinstance(right, tuple) else right * 1.01

    return wrong


@pytest.mark.parametrize(
    ("operator", "wrong", "first", "culprit"),
    [
        (aten.hardswish.default, other, "mixed", "torch.nn.functional.hardswish"),
        (aten.silu.default, None, "gated", "torch.nn.functional.silu"),
        (aten.native_group_norm.default, None, "softplus", "torch.nn.functional.group_norm"),
        (aten.nan_to_num.default, None, "softplus", "nan_to_num"),
        (aten.logsumexp.default, None, "logsumexp", "logsumexp"),
    ],
    ids=lambda one: str(one) if isinstance(one, torch._ops.OpOverload) else "",
)
def test_the_operator_of_a_wrong_decomposition_is_named(
    device: Device,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operator: Any,
    wrong: Decomposition | None,
    first: str,
    culprit: str,
) -> None:
    table = select_decomp_table()  # which other tests may have had made anew
    monkeypatch.setitem(table, operator, wrong or scaled(table[operator]))
    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(Program(layers, inputs), tmp_path, device))

    assert {one.verdict for one in said.launches} == {"right"}
    [named] = [one for one in said.findings if isinstance(one, TracedOff) and one.first]
    assert named.first == first and culprit in named.operators
    text = "\n".join(judgement_text(said, ()))
    assert f"the first node that differs is {first}" in text and culprit in text


def test_of_a_graph_with_more_values_than_are_compared_no_node_is_named(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged_call, "COMPARED", 1000)
    monkeypatch.setitem(select_decomp_table(), aten.hardswish.default, other)
    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(Program(layers, inputs), tmp_path, device))

    findings = [one for one in said.findings if isinstance(one, TracedOff)]
    assert findings and {one.first for one in findings} == {""}


def node(name: str, *read: str, op: str = "call_function") -> FxNode:
    return FxNode(name, op, f"torch.{name}", args=[{"node": one} for one in read])


def known(value: float, **how: Any) -> Expected:
    return Expected(torch.linspace(1, value, 6, dtype=torch.float64), torch.zeros(()), **how)


GRAPH = FxGraph(
    [node("x", op="placeholder"), node("a", "x"), node("b", "a"), node("c", "b"), node("output", "c")]
)
MADE = {"a": known(3), "b": known(5), "c": known(7)}


def named(received: list[Expected], made: dict[str, Expected] = MADE, wrong: str = "c") -> str | None:
    first = first_difference(GRAPH, made, received, wrong)
    return first.node.name if first is not None else None


def test_the_first_value_that_the_other_graph_lacks_is_the_difference() -> None:
    assert named([known(3), known(5), known(8)]) == "c"
    assert named([known(3), known(6)]) == "b"
    assert named([]) == "a"


def test_a_value_that_the_other_graph_needs_for_none_that_it_has_is_computed_otherwise() -> None:
    assert named([known(7)]) == "c"  # what is returned is another one: a and b are right
    assert named([known(5), known(8)]) == "c"


def test_elements_are_compared_in_any_order_and_shape() -> None:
    a = Expected(MADE["a"].exact.flip(0).view(2, 3), torch.zeros(()))

    assert named([a, known(6)]) == "b"


def test_a_value_that_draws_or_has_no_float64_names_no_node() -> None:
    assert named([known(3)], {**MADE, "b": known(5, drawn=True)}) is None
    assert named([known(3)], {**MADE, "b": known(5, missing=("mylib::op",))}) is None


def test_fills_of_a_mask_hide_no_other_element() -> None:
    for fill in (-torch.inf, -1e9, -3e38):
        filled = [
            Expected(torch.cat([one.exact, torch.full((4,), fill)]), one.spread) for one in MADE.values()
        ]
        wrong = Expected(filled[1].exact * torch.tensor([1.001, *[1.0] * 9]), filled[1].spread)

        assert named([filled[0], wrong], dict(zip("abc", filled, strict=True))) == "b"
