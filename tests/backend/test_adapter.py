"""The accelerator of docs/backend.md, registered by entry points."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from commands import ROOT
from typer.testing import CliRunner

from tracing import store
from tracing.backend import AcceleratorAdapter, Capabilities, ConstraintsViolated, accelerator
from tracing.backend.constraints import DtypeConstraint, PeakMemoryConstraint, ShapeConstraint
from tracing.cli.app import app
from tracing.errors import Problem
from tracing.model import CheckedGraph, GraphKind

PAGE = (ROOT / "docs/backend.md").read_text().partition("## An accelerator of your own")[2]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the package of the page, as pip installs it."""
    module = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    toml = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
    (tmp_path / "npu.py").write_text(module)
    info = tmp_path / "npu-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: npu\nVersion: 1.0\n")
    points = toml.replace("[project.entry-points.", "[").replace('"', "")
    (info / "entry_points.txt").write_text(points)
    return tmp_path


def executed(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


def test_torch_compile_finds_the_accelerator_of_the_page_by_name(installed: Path) -> None:
    done = executed(
        installed,
        "-c",
        "import torch\n"
        "fn = torch.compile(lambda x: x @ x, backend='npu')\n"
        "print(fn(torch.ones(16, 16)).sum().item())\n"
        "fn(torch.ones(17, 17))\n",
    )

    assert done.stdout.splitlines()[:2] == ["npu: inference graph of 3 nodes", "4096.0"], done.stderr
    assert "ConstraintsViolated: npu: " in done.stderr and "a multiple of 16" in done.stderr


def test_the_command_checks_against_the_accelerator_of_the_page(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed)
    words = ("check", "silu", "--accelerator", "npu", "--runs", str(installed / "runs"))
    done = CliRunner().invoke(app, words)

    assert done.exit_code == 0, done.output
    assert "0 violations; 3 of 3 operators supported in 1 partition" in done.output


def test_an_unknown_accelerator_is_refused() -> None:
    with pytest.raises(Problem, match="no installed package registers an accelerator 'tpu9'"):
        accelerator("tpu9")


def test_capabilities_are_constraints_and_none_limits_nothing() -> None:
    assert Capabilities().constraints() == ()
    assert Capabilities(dtypes={torch.half}, alignment=8, memory_bytes=10).constraints() == (
        ShapeConstraint(8),
        DtypeConstraint({"float16"}),
        PeakMemoryConstraint(10),
    )


class Counting(AcceleratorAdapter):
    """Compiles graphs of sizes that are multiples of 4, and notes which."""

    name = "counting"

    def __init__(self) -> None:
        self.compiled: list[GraphKind] = []

    def capabilities(self) -> Capabilities:
        return Capabilities(alignment=4)

    def compile(self, graph: torch.fx.GraphModule, kind: GraphKind) -> torch.fx.GraphModule:
        self.compiled.append(kind)
        return graph


def test_an_adapter_compiles_forward_and_backward_and_gradients_are_right(run: store.Run) -> None:
    adapter = Counting()
    x = torch.rand(4, requires_grad=True)
    result = torch.compile(torch.sin, backend=adapter.backend())(x)
    (gradient,) = torch.autograd.grad(result.sum(), x)

    assert sorted(adapter.compiled) == ["backward", "forward"]
    assert torch.allclose(gradient, x.cos())
    assert {one.backend for one in run.records(CheckedGraph)} == {"counting"}


def test_a_graph_that_violates_is_executed_in_eager_unless_strict(run: store.Run) -> None:
    adapter, x = Counting(), torch.rand(5)

    assert torch.equal(torch.compile(torch.sin, backend=adapter.backend(strict=False))(x), x.sin())
    assert adapter.compiled == []
    torch.compiler.reset()
    with pytest.raises(ConstraintsViolated, match="counting: 2 violations"):
        torch.compile(torch.sin, backend=adapter.backend())(x)
