"""Programs that call torch.func are judged by the graphs that Dynamo traced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor
import torch.nn.functional as F
from judged_programs import values
from planted_kernels import Program, judgement, recorded, traced
from torch._C import _autograd, _functorch
from torch._inductor.decomposition import select_decomp_table
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from tracing.analyze.judge.findings import TracedOff
from tracing.judge.traced.traced_program import TracedProgram
from tracing.numerics.reference import reference
from tracing.program.device import Device

CPU = torch.device("cpu")
aten = torch.ops.aten


def inputs() -> list[torch.Tensor]:
    return [values(6, 4, g=0), values(6, 4, g=1)]


def followed() -> list[torch.Tensor]:
    return [one.requires_grad_() for one in inputs()]


def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (F.hardswish(x).sin() * y).sum()


def gradient(x: torch.Tensor, y: torch.Tensor) -> Any:
    return grad(loss)(x, y)


def of_each_row(x: torch.Tensor, y: torch.Tensor) -> Any:
    return vmap(grad(lambda a, b: (a.softmax(0) * b).square().sum()))(x, y)


def of_its_own(x: torch.Tensor, y: torch.Tensor) -> Any:
    return grad(lambda z: grad(lambda a: (a.sin() * y).sum())(z).square().sum())(x)


def written(x: torch.Tensor, y: torch.Tensor) -> Any:
    def own(z: torch.Tensor) -> torch.Tensor:
        z = z.clone()
        z[0] = 1
        return (z.mul_(2).sin() * y).sum()

    return grad(own)(x)


def without_grad_inside(x: torch.Tensor, y: torch.Tensor) -> Any:
    def own(z: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            factor = z.exp()
        return (z * factor * y).sum()

    return grad(own)(x)


def pulled_back(x: torch.Tensor, y: torch.Tensor) -> Any:
    made, pull = vjp(lambda a, b: (a.sin() * b, a.exp()), x, y)
    return (*made, *pull((y, x)))


def in_rows(x: torch.Tensor, y: torch.Tensor) -> Any:
    return jacrev(lambda a: (a * y[0]).cumsum(0))(x[0]), y.cos()


def pushed_forward(x: torch.Tensor, y: torch.Tensor) -> Any:
    return jvp(lambda a: (a.tanh() * y).logsumexp(0), (x,), (y,))


def in_columns(x: torch.Tensor, y: torch.Tensor) -> Any:
    return jacfwd(lambda a: (a * y[0]).cumsum(0))(x[0]), y.cos()


def twice(x: torch.Tensor, y: torch.Tensor) -> Any:
    return hessian(lambda a: (a.sin() * y[0]).prod())(x[0]), y.cos()


def of_soft_labels(x: torch.Tensor, y: torch.Tensor) -> Any:
    # in the backward, exact arithmetic gives zeros, which rounding moves rarely
    return grad(lambda z: F.cross_entropy(z, y.softmax(-1)))(x)


BACKWARDS = (
    gradient,
    of_each_row,
    of_its_own,
    written,
    without_grad_inside,
    pulled_back,
    in_rows,
    of_soft_labels,
)
FORWARDS = (pushed_forward, in_columns, twice)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("function", [*BACKWARDS, *FORWARDS])
def test_a_right_program_is_right(
    function: Callable[..., Any], backward: bool, device: Device, tmp_path: Path
) -> None:
    program = Program(function, followed if backward else inputs, backward=backward, calls=2)
    said = judgement(recorded(program, tmp_path, device))

    assert (said.status, said.findings, said.not_covered) == (0, (), ())


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_grad_mode_around_the_program_does_not_change_its_gradients(
    mode: Callable[[], Any], device: Device, tmp_path: Path
) -> None:
    with mode():
        run = recorded(Program(gradient, inputs), tmp_path, device)
    said = judgement(run)

    assert (said.status, said.findings, said.not_covered) == (0, (), ())


def test_a_wrong_decomposition_of_a_gradient_is_found(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        select_decomp_table(), aten.hardswish_backward.default, lambda grad, x: grad * (x > -3) * (x + 2) / 3
    )
    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(Program(gradient, inputs), tmp_path, device))

    assert {one.verdict for one in said.launches} == {"right"}
    assert [one.wrong.name for one in said.findings if isinstance(one, TracedOff)] == ["output 0"]


def with_another_constant(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=aten.mul.Scalar):
        node.args = (node.args[0], -3)  # of the derivative of tanh ** 2, which only the backward needs


def test_a_joint_pass_that_changes_a_second_derivative_is_found(device: Device, tmp_path: Path) -> None:
    with inductor.patch(joint_custom_post_pass=with_another_constant, force_disable_caches=True):
        said = judgement(recorded(Program(pushed_forward, followed, backward=True), tmp_path, device))

    [finding] = said.findings
    assert isinstance(finding, TracedOff) and finding.wrong.name.startswith("gradient of input")
    assert finding.lines[0].function == "<lambda>"


def first(made: Any) -> torch.Tensor:
    return made if isinstance(made, torch.Tensor) else made[0]


def in_order(program: TracedProgram, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    return [x if node.name == "l_x_" else y for node in program.inputs]


@pytest.mark.parametrize("function", [of_each_row, of_its_own, twice])
def test_float64_follows_what_levels_compute(function: Callable[..., Any]) -> None:
    x, y = (one.cpu() for one in inputs())
    program = TracedProgram(traced(function, x, y), CPU)
    own = in_order(program, x, y)
    expected = reference(lambda: {"z": program.run(own, {}).results[0]}, samples=2)["z"]
    exact = first(function(x.double(), y.double()))

    torch.testing.assert_close(expected.exact, exact, rtol=1e-13, atol=1e-13)
    assert expected.missing == () and bool((expected.spread > 0).any())


@pytest.mark.parametrize("function", [of_each_row, twice])
def test_a_graph_that_raises_leaves_no_level(function: Callable[..., Any]) -> None:
    x, y = (one.cpu() for one in inputs())
    program = TracedProgram(traced(function, x, y), CPU)
    with pytest.raises((RuntimeError, ValueError)):
        program.run(in_order(program, x, y[:, :3]), {})

    assert _functorch.get_dynamic_layer_stack_depth() == 0
    assert _autograd._saved_tensors_hooks_get_disabled_error_message() is None
    torch.testing.assert_close(program.run(in_order(program, x, y), {}).results[0], first(function(x, y)))
