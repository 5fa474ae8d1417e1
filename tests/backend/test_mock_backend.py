"""Graphs that are checked and executed in eager."""

from __future__ import annotations

import logging
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tracing import mock_backend, recording, store
from tracing.backend import ConstraintsViolated, eager_backend
from tracing.backend.constraints import LayoutConstraint, ShapeConstraint, UnsupportedOpsConstraint
from tracing.environment.mock_settings import mock_settings
from tracing.errors import Problem
from tracing.model import CheckedGraph, NotCovered, Outcome, Violation
from tracing.store.graph_file import read_graph

ALIGNED = [ShapeConstraint(alignment=8)]


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w)


def operands(columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(8, 16), torch.rand(16, columns, requires_grad=True)


def test_results_and_gradients_are_those_of_eager_bit_by_bit(run: store.Run) -> None:
    (x, w), compiled = operands(8), torch.compile(product, backend=mock_backend)

    (given,) = torch.autograd.grad(compiled(x, w).sum(), w)
    (expected,) = torch.autograd.grad(product(x, w).sum(), w)

    assert torch.equal(compiled(x, w), product(x, w)) and torch.equal(given, expected)


def test_forward_and_backward_are_checked_and_recorded_each_by_itself(run: store.Run) -> None:
    x, w = operands(12)
    torch.compile(product, backend=eager_backend(strict=False, constraints=ALIGNED))(x, w)

    graphs = list(run.records(CheckedGraph))
    assert [(one.kind, one.backend, one.compile_id) for one in graphs] == [
        ("forward", "mock_backend", "0/0"),
        ("backward", "mock_backend", "0/0"),
    ]
    by_graph = {one.graph for one in run.records(Violation)}
    assert by_graph == {0, 1}
    assert any(node.target == "aten::mm" for node in read_graph(run, graphs[1].nodes).nodes)


def test_a_graph_without_gradients_is_an_inference_graph(run: store.Run) -> None:
    torch.compile(product, backend=mock_backend)(*(one.detach() for one in operands(8)))

    assert [one.kind for one in run.records(CheckedGraph)] == ["inference"]


def test_strict_raises_all_violations_before_anything_is_executed(run: store.Run) -> None:
    executed: list[int] = []

    @torch.library.custom_op("backendtest::noted", mutates_args=())
    def noted(x: torch.Tensor) -> torch.Tensor:
        executed.append(1)
        return x.clone()

    noted.register_fake(torch.empty_like)
    constraints = [*ALIGNED, UnsupportedOpsConstraint(["relu"])]
    compiled = torch.compile(
        lambda x, w: noted(product(x, w)), backend=eager_backend(strict=True, constraints=constraints)
    )

    with pytest.raises(ConstraintsViolated) as raised:
        compiled(*(one.detach() for one in operands(12)))

    assert executed == []
    operators = [one.operator for one in raised.value.violations]
    assert operators == ["input", "aten.mm.default", "aten.relu.default", "aten.relu.default",
                         "backendtest.noted.default"]  # fmt: skip
    assert all(one.text in str(raised.value) for one in raised.value.violations)
    assert list(run.records(Violation)) == list(raised.value.violations)


@pytest.mark.soak
def test_the_repro_of_a_violation_raises_the_same_in_a_fresh_process(run: store.Run, tmp_path: Path) -> None:
    compiled = torch.compile(product, backend=eager_backend(strict=True, constraints=ALIGNED))
    with pytest.raises(ConstraintsViolated) as raised:
        compiled(*operands(12))

    empty = tmp_path / "empty"
    empty.mkdir()
    command = [sys.executable, str(raised.value.repro)]
    done = subprocess.run(command, cwd=empty, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    for violation in raised.value.violations:
        assert f"{violation.node} ({violation.operator}): {violation.found}" in done.stderr


def test_a_repro_has_constants_symbolic_sizes_and_strides_of_the_graph(run: store.Run) -> None:
    table = torch.arange(3.0)
    backend = eager_backend(strict=True, constraints=[LayoutConstraint()])
    compiled = torch.compile(
        lambda x: x.t() + torch.tensor([1.0, 2.0]) + table[0], backend=backend, dynamic=True
    )
    with pytest.raises(ConstraintsViolated) as raised:
        compiled(torch.rand(2, 4))

    torch.compiler.reset()
    with pytest.raises(ConstraintsViolated) as repeated:
        runpy.run_path(str(raised.value.repro))

    assert [one.operator for one in repeated.value.violations] == [
        one.operator for one in raised.value.violations
    ]


def test_warnings_name_graph_node_and_line_and_the_program_goes_on(
    run: store.Run, caplog: pytest.LogCaptureFixture
) -> None:
    x, w = operands(12)
    with caplog.at_level(logging.WARNING, "tracing"):
        result = torch.compile(product, backend=eager_backend(strict=False, constraints=ALIGNED))(x, w)

    assert torch.equal(result, product(x, w))
    mine = [one.getMessage() for one in caplog.records if "aten.mm" in one.getMessage()]
    assert mine[0].startswith("mock_backend: graph 0/0 forward: mm (aten.mm.default): size 12 of dimension 1")
    assert "(test_mock_backend.py:" in mine[0]


def test_an_undecided_size_does_not_raise_and_is_recorded(run: store.Run) -> None:
    backend = eager_backend(strict=True, constraints=ALIGNED)
    torch.compile(lambda x: x * 2, backend=backend, dynamic=True)(torch.rand(16))

    assert {one.decided for one in run.records(Violation)} == {False}


def test_the_environment_sets_strictness_alignment_and_memory(
    run: store.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOCK_ALIGNMENT", "8")
    monkeypatch.setenv("MOCK_MAX_MEMORY", "500")
    monkeypatch.setenv("MOCK_STRICT", "0")
    torch.compile(product, backend=mock_backend)(*operands(12))
    limits = {one.constraint.split("(")[0] for one in run.records(Violation)}
    assert limits == {"ShapeConstraint", "MemoryConstraint"}

    torch.compiler.reset()
    monkeypatch.setenv("MOCK_STRICT", "1")
    with pytest.raises(ConstraintsViolated):
        torch.compile(product, backend=mock_backend)(*operands(12))


@pytest.mark.parametrize(("name", "text"), [("MOCK_STRICT", "yes"), ("MOCK_ALIGNMENT", "0")])
def test_a_setting_that_is_no_such_number_is_refused(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(Problem, match=f"{name} is '{text}'"):
        mock_settings()


def test_a_gradient_that_is_none_stays_none(run: store.Run) -> None:
    x, w = operands(8)
    unused = torch.rand(3, requires_grad=True)

    def program(x: torch.Tensor, w: torch.Tensor, unused: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return product(x, w), unused.detach() * 2

    result, _ = torch.compile(program, backend=mock_backend)(x, w, unused)
    result.sum().backward()

    assert w.grad is not None and unused.grad is None


def test_what_aot_autograd_cannot_trace_is_executed_and_recorded_as_not_checked(run: store.Run) -> None:
    @torch.library.custom_op("backendtest::opaque", mutates_args=())
    def opaque(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    traced: list[int] = []

    @opaque.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        traced.append(1)
        if len(traced) > 1:  # Dynamo traces it once, AOTAutograd once more
            raise NotImplementedError("of a second look")
        return torch.empty_like(x)

    compiled = torch.compile(opaque, backend=eager_backend(strict=False, constraints=ALIGNED))

    assert compiled(torch.zeros(2)).tolist() == [1, 1]
    assert any("of a second look" in one.what for one in run.records(NotCovered))


def test_torch_compile_finds_both_backends_by_name() -> None:
    assert {"mock_backend", "aot_mock_backend"} <= set(torch.compiler.list_backends())


def test_a_program_records_into_a_run_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import os, torch\n"
        "fn = torch.compile(lambda x: x * 2, backend='mock_backend')\n"
        "fn(torch.ones(4))\n"
        "os.chdir('/')\n"
        "fn(torch.ones(4).double())\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    (path,) = (tmp_path / "runs").iterdir()

    assert done.returncode == 1
    assert "ConstraintsViolated: mock_backend: 2 violations of constraints" in done.stderr
    assert path.name.startswith("train-")
    assert {one.found for one in store.Run(path).records(Violation)} == {"float64"}
    assert [one.status for one in store.Run(path).records(Outcome)] == ["compiled"]


def test_checks_of_recorded_code_are_in_the_run_of_the_recording(tmp_path: Path) -> None:
    runs = []
    for fn in (torch.sin, torch.cos):
        torch.compiler.reset()
        with recording(runs=str(tmp_path)) as run:
            torch.compile(fn, backend=mock_backend)(torch.rand(4))
        runs.append(run)

    assert [len(list(run.records(CheckedGraph))) for run in runs] == [1, 1]
