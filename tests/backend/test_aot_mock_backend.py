"""Graphs that are checked before Inductor compiles them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tracing import aot_mock_backend, store
from tracing.backend import ConstraintsViolated
from tracing.backend.constraints import DtypeConstraint, ShapeConstraint, UnsupportedOpsConstraint
from tracing.model import CheckedGraph, CompiledGraph, Violation


def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * w)


def test_inductor_compiles_forward_and_backward_and_gradients_agree_with_eager(run: store.Run) -> None:
    x, w, unused = torch.rand(8), torch.rand(8, requires_grad=True), torch.rand(8, requires_grad=True)

    def program(x: torch.Tensor, w: torch.Tensor, unused: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return scaled(x, w), unused.detach() * 2

    result, _ = torch.compile(program, backend=aot_mock_backend(strict=True))(x, w, unused)
    assert [one.kind for one in run.records(CheckedGraph)] == ["forward"]
    result.sum().backward()

    assert [one.kind for one in run.records(CheckedGraph)] == ["forward", "backward"]
    torch.testing.assert_close(result, scaled(x, w))
    torch.testing.assert_close(w.grad, torch.autograd.grad(scaled(x, w).sum(), w)[0])
    assert unused.grad is None  # and no tensor of zeros


def test_inductor_can_cache_what_it_compiles(run: store.Run) -> None:
    torch._dynamo.utils.counters.clear()

    compiled = torch.compile(scaled, backend=aot_mock_backend(True))
    compiled(torch.rand(8, requires_grad=True), torch.rand(8)).sum().backward()

    counted = torch._dynamo.utils.counters["inductor"]  # Inductor pickles graphs for its keys
    assert (counted["fxgraph_cache_miss"], counted["fxgraph_cache_bypass"]) == (2, 0)


def test_a_violation_in_the_backward_only_is_raised_by_the_backward(run: store.Run) -> None:
    # mul by a constant has none of this operator in its forward
    constraints = [UnsupportedOpsConstraint(["aten.expand"])]
    x = torch.rand(8, requires_grad=True)
    result = torch.compile(lambda one: (one * 2).sum(), backend=aot_mock_backend(True, constraints))(x)

    with pytest.raises(ConstraintsViolated, match=r"graph .*backward: expand"):
        result.backward()


def test_strict_raises_before_inductor_compiles(run: store.Run) -> None:
    constraints = [ShapeConstraint(alignment=8), DtypeConstraint(allowed_dtypes={"float32", "float16"})]
    with pytest.raises(ConstraintsViolated) as raised:
        torch.compile(scaled, backend=aot_mock_backend(True, constraints))(torch.rand(6), torch.rand(6))

    assert {one.found for one in raised.value.violations} == {"size 6 of dimension 0, shape (6,)"}
    assert "aot_mock_backend" in raised.value.repro.read_text()


def test_operators_are_named_as_in_the_program_although_inductor_decomposes_them(run: store.Run) -> None:
    constraints = [UnsupportedOpsConstraint(["F.gelu", "aten.native_layer_norm"])]

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(torch.nn.functional.gelu(x), (8,))

    with pytest.raises(ConstraintsViolated) as raised:
        torch.compile(program, backend=aot_mock_backend(True, constraints))(torch.rand(2, 8))

    assert {one.required for one in raised.value.violations} == {"no F.gelu", "no aten.native_layer_norm"}
    assert list(run.records(Violation)) == list(raised.value.violations)


@pytest.mark.soak
def test_outside_of_a_recorded_case_the_code_of_inductor_is_recorded(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "from tracing import aot_mock_backend\n"
        "fn = torch.compile(lambda x: x.tanh(), backend=aot_mock_backend(strict=True))\n"
        "fn(torch.ones(4, requires_grad=True)).sum().backward()\n"
    )
    subprocess.run([sys.executable, str(script)], cwd=tmp_path, check=True)
    run = store.open_run("latest", tmp_path / "runs")

    graphs = list(run.records(CompiledGraph))
    assert [one.phase for one in graphs] == ["forward", "backward"]
    assert "tanh" in run.text(graphs[0].code) and "aten.tanh" in run.text(graphs[0].text)
