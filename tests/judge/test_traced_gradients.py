"""Gradients are judged by the graphs that Dynamo traced: a formula of a gradient is seen nowhere else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from importlib.util import find_spec
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
from tracing.judge.contents import Contents
from tracing.judge.traced.traced_executions import traced_executions
from tracing.judge.traced.traced_referee import TracedReferee
from tracing.model import GraphCall, TracedBackward
from tracing.program.device import Device
from tracing.report.judge.judgement import judgement_text

aten = torch.ops.aten
HOOKS = pytest.mark.skipif(
    find_spec("torch._higher_order_ops.register_hook") is None, reason="Dynamo breaks the graph at a hook"
)


def inputs() -> list[torch.Tensor]:
    return [values(6, 4, g=0).requires_grad_(), values(6, 4, g=1).requires_grad_()]


def softer(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return F.hardswish(x) * y, y.sin()


def wrong_backward(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return grad * x.clamp(-3, 3) / 5


def test_a_wrong_decomposition_of_a_backward_is_found(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(select_decomp_table(), aten.hardswish_backward.default, wrong_backward)
    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(Program(softer, inputs, backward=True), tmp_path, device))

    assert {one.verdict for one in said.launches} == {"right"} and said.status == 1
    [finding] = said.findings
    assert isinstance(finding, TracedOff) and finding.wrong.name == "gradient of input 0"
    assert [line.code for line in finding.lines] == ["return F.hardswish(x) * y, y.sin()"]


def deeper(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    first = a.sin() * b
    second = F.hardswish(first)
    return second * c


def test_the_gradient_next_to_the_cause_is_first(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(select_decomp_table(), aten.hardswish_backward.default, wrong_backward)
    three = Program(deeper, lambda: [values(6, 4, g=g).requires_grad_() for g in range(3)], backward=True)
    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(three, tmp_path, device))

    assert [one.wrong.name for one in said.findings if isinstance(one, TracedOff)] == [
        "gradient of input 1", "gradient of input 0",
    ]  # fmt: skip
    lines = [line.code for one in said.findings for line in getattr(one, "lines", ())]
    assert {*lines} == {"second = F.hardswish(first)", "return second * c"}  # not that of the right products
    text = [one.strip() for one in judgement_text(said, ())]
    assert text[0] == "✗ gradient of input 1 is not what the graph that Dynamo traced computes"
    assert "at        tests/judge/test_traced_gradients.py" in "\n".join(text)
    assert "also off  gradient of input 0" in text and sum(one.startswith("✗") for one in text) == 1


def viewed(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    z = x * y
    return z, z.mT, x.mT


def partly(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        z = x.sin() * y
    return z * y + x.detach() * y.exp()


def checkpointed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = torch.utils.checkpoint.checkpoint(lambda z: z.sin() * y, x, use_reentrant=False)
    return made


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, y)
        return x.sin() * y

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = ctx.saved_tensors
        return gradients[0] * y / 2, gradients[0] * x.sin()


def halved(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = Halved.apply(x, y)
    return made * y


def attended(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    q = x[None, None]
    return F.scaled_dot_product_attention(q, y[None, None], q) + F.layer_norm(y, [4])


def overwriting(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x * 2
    z[1:].mul_(y[1:])
    return z.relu_() + F.cross_entropy(y, x.argmax(1))


@pytest.mark.parametrize("function", [softer, viewed, partly, checkpointed, halved, attended, overwriting])
def test_a_right_backward_is_right(function: Callable[..., Any], device: Device, tmp_path: Path) -> None:
    run = recorded(Program(function, inputs, backward=True, calls=2), tmp_path, device)
    said = judgement(run)

    assert len([*run.records(TracedBackward)]) == 2
    assert (said.status, said.findings, said.not_covered) == (0, (), ())


def with_another_gradient(graph: torch.fx.Graph) -> None:
    *_, output = graph.nodes
    gradients = [one for one in graph.find_nodes(op="placeholder") if "tangents" in one.name]
    if not gradients:
        return
    results, made = output.args[0], [one for one in output.args[0] if isinstance(one, torch.fx.Node)]
    with graph.inserting_before(output):
        wrong = graph.call_function(aten.mul.Tensor, (made[-1], 1.125))
    wrong.meta = {**made[-1].meta}
    output.args = ([wrong if one is made[-1] else one for one in results],)


@pytest.mark.parametrize("function", [softer, viewed, partly, checkpointed, halved, attended, overwriting])
def test_a_joint_pass_that_changes_a_gradient_is_found(
    function: Callable[..., Any], device: Device, tmp_path: Path
) -> None:
    with inductor.patch(joint_custom_post_pass=with_another_gradient, force_disable_caches=True):
        said = judgement(recorded(Program(function, inputs, backward=True), tmp_path, device))

    assert {one.wrong.name for one in said.findings if isinstance(one, TracedOff)} == {"gradient of input 1"}
    assert {one.verdict for one in said.launches} == {"right"}


def hooked(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z, factor = x.sin() * y, y.cos()
    z.register_hook(lambda gradient: F.hardswish(gradient) * factor)
    z.register_hook(lambda gradient: None)
    return z * y


def hooked_inside(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    def inner(z: torch.Tensor) -> torch.Tensor:
        w = z * y
        w.register_hook(F.hardswish)
        return (w * y).sum()

    made: torch.Tensor = torch.func.grad(inner)(x)
    return made * y


@HOOKS
@pytest.mark.parametrize("function", [hooked, hooked_inside])
def test_hooks_of_tensors_are_called(
    function: Callable[..., Any], device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = judgement(recorded(Program(function, inputs, backward=True), tmp_path, device))
    monkeypatch.setitem(select_decomp_table(), aten.hardswish.default, lambda x: x * (x + 3).clamp(0, 6) / 5)
    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(Program(function, inputs, backward=True), tmp_path, device))

    assert (right.status, right.findings, right.not_covered) == (0, (), ())
    wrong = {one.wrong.name for one in said.findings if isinstance(one, TracedOff)}
    assert wrong == ({"gradient of input 0", "gradient of input 1"} if function is hooked else {"output 0"})


def two_views(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    z = x * y
    return z.view(-1)[3:], z.mT


def drawn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x).geometric_(0.5) * x * y


def without_gradients(graph: torch.fx.Graph) -> None:
    *_, output = graph.nodes
    if graph.find_nodes(op="placeholder")[-1].name.startswith("tangents"):
        output.args = ([output.args[0][0], None],)


def test_a_pass_that_loses_the_only_gradient_is_found(device: Device, tmp_path: Path) -> None:
    one = Program(F.hardswish, lambda: inputs()[:1], backward=True)
    with inductor.patch(joint_custom_post_pass=without_gradients, force_disable_caches=True):
        said = judgement(recorded(one, tmp_path, device))

    assert [one.wrong.name for one in said.findings if isinstance(one, TracedOff)] == ["gradient of input 0"]


def used_in_part(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    made = torch.compile(softer)(x, y)[0]
    return torch.compiler.disable(torch.sum)(made)


def test_a_result_that_the_loss_does_not_use_has_no_gradient(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Program(torch.compiler.disable(used_in_part), inputs, backward=True)
    said = judgement(recorded(part, tmp_path, device))
    monkeypatch.setitem(select_decomp_table(), aten.hardswish_backward.default, wrong_backward)
    with inductor.patch(force_disable_caches=True):
        wrong = judgement(recorded(part, tmp_path, device))

    assert (said.status, said.findings, said.not_covered) == (0, (), ())
    assert [one.wrong.name for one in wrong.findings if isinstance(one, TracedOff)] == ["gradient of input 0"]


def of_two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.mul_(2)
    return x.sin() * y


def overlapping() -> list[torch.Tensor]:
    x = values(12, 4, g=0).requires_grad_().clone()
    return [x[:6], x[5:11]]


@pytest.mark.usefixtures("no_geometric_numbers")
@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        (two_views, inputs, "the gradient of a tensor that is no result, as the base of a view"),
        (drawn, inputs, "random numbers"),
        (of_two, overlapping, "the gradient of a tensor that is no result"),
    ],
)
def test_what_has_no_reference_is_not_covered(
    function: Callable[..., Any],
    arguments: Callable[[], list[torch.Tensor]],
    reason: str,
    device: Device,
    tmp_path: Path,
) -> None:
    said = judgement(recorded(Program(function, arguments, backward=True), tmp_path, device))

    assert said.findings == () and any(reason in one for one in said.not_covered), said.not_covered


class Written(torch.nn.Module):
    """Its compiled form, of which the program changes what autograd saved."""

    def __init__(self, saved: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self._saved, self._compiled = saved, torch.compile(lambda x, y: (x * y).exp())

    @torch.compiler.disable
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self._compiled(x, y)
        self._saved(x, y, made).data.mul_(1.5)
        return made


@pytest.mark.parametrize("saved", [lambda x, y, z: x, lambda x, y, z: y, lambda x, y, z: z])
def test_a_backward_is_not_judged_if_the_program_changed_what_it_reads(
    saved: Callable[..., torch.Tensor], device: Device, tmp_path: Path
) -> None:
    said = judgement(recorded(Program(Written(saved), inputs, backward=True), tmp_path, device))

    assert said.findings == ()
    assert any("changed between the call and its backward" in one for one in said.not_covered)


@pytest.mark.parametrize(
    ("side", "reason"),
    [
        ("input", "the gradient of a result whose content was not recorded"),
        ("output", "gradient of input 0 of graph 1 by Dynamo's graph: no reference"),
    ],
)
def test_a_gradient_without_content_is_not_covered(
    side: str, reason: str, device: Device, tmp_path: Path
) -> None:
    run = recorded(Program(softer, inputs, backward=True), tmp_path, device)
    [process], [backward] = run.processes(), [*run.records(TracedBackward)]
    contents = Contents.of(run, process, torch.device("cpu"))
    kept = {at: blob for at, blob in contents.graphs.items() if (at[0], at[2]) != (backward.index, side)}
    referee = TracedReferee(run, process, dataclasses.replace(contents, graphs=kept))
    [_, execution] = traced_executions(run, process, [*run.records(GraphCall)])
    said = referee.judge(execution, ())

    assert said.off == () and any(reason in one for one in said.not_covered), said.not_covered
