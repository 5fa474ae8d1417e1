"""The programs that users of a mock backend write first, and the page that documents them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import ROOT
from typer.testing import CliRunner

import tracing
from tracing import KernelDiffHarness, aot_mock_backend, compare_tensors, mock_backend, store
from tracing.backend import ConstraintsViolated, default_constraints
from tracing.backend.constraints import DtypeConstraint, ShapeConstraint
from tracing.cli.app import COMMANDS, app
from tracing.environment.mock_settings import mock_settings
from tracing.model import CheckedGraph, Violation
from tracing.numerics.tensor_diff import ComparisonConfig
from tracing.program.case import load_case


class Attention(torch.nn.Module):
    """One projection, whose input is cast to float64."""

    def __init__(self, weights: torch.dtype) -> None:
        super().__init__()
        self.proj = torch.nn.Linear(64, 64, dtype=weights)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.proj(x.double())  # type: ignore[no-any-return]


class Training(torch.nn.Module):
    """A model that returns its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Linear(16, 8)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.mse_loss(self.net(x), y)


def test_an_aligned_model_passes_the_strict_mock_backend(
    run: store.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOCK_STRICT", "1")
    monkeypatch.setenv("MOCK_ALIGNMENT", "8")
    model = Training().net.requires_grad_(False)
    x = torch.rand(8, 16)

    assert torch.equal(torch.compile(model, backend=mock_backend)(x), model(x))
    assert list(run.records(Violation)) == []


@pytest.mark.soak
def test_a_training_step_passes_the_strict_aot_backend(run: store.Run) -> None:
    model, reference = Training(), Training()
    reference.load_state_dict(model.state_dict())
    backend = aot_mock_backend(
        strict=True,
        constraints=[
            ShapeConstraint(alignment=8),
            DtypeConstraint(allowed_dtypes={"float32", "float16"}),
        ],
    )
    x, y = torch.rand(8, 16), torch.rand(8, 8)

    torch.compile(model, backend=backend)(x, y).backward()
    reference(x, y).backward()

    assert [one.kind for one in run.records(CheckedGraph)] == ["forward", "backward"]
    for given, expected in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(given.grad, expected.grad)


@pytest.mark.parametrize("weights", [torch.float32, torch.float64], ids=str)
def test_a_cast_to_float64_is_an_error_before_anything_is_executed(
    weights: torch.dtype, run: store.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOCK_STRICT", "1")
    monkeypatch.setenv("MOCK_ALIGNMENT", "16")
    compiled = torch.compile(Attention(weights), backend=mock_backend)

    # with float32 weights eager refuses the program, too; tensors without data, which Dynamo traces, do not
    with pytest.raises(ConstraintsViolated, match=r"x\.double\(\)") as raised:
        compiled(torch.randn(32, 64))

    cast = next(one for one in raised.value.violations if one.operator == "aten._to_copy.default")
    assert cast.found == "float64"
    printed = CliRunner().invoke(app, ["check", str(run.path)])
    assert printed.exit_code == 1 and "float64; needed: " in printed.output


def test_a_batch_that_is_not_aligned_is_an_error_of_that_batch(
    run: store.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOCK_ALIGNMENT", "16")
    compiled = torch.compile(torch.nn.Linear(16, 16).requires_grad_(False), backend=mock_backend)

    compiled(torch.rand(32, 16))
    with pytest.raises(ConstraintsViolated, match=r"\(33 in this call\)"):
        compiled(torch.rand(33, 16))  # the size is symbolic now


def test_lu_and_float64_are_refused_without_any_settings(run: store.Run) -> None:
    assert mock_settings().strict and mock_settings().alignment == 1
    with pytest.raises(ConstraintsViolated, match=r"aten\.linalg_lu\.default"):
        torch.compile(lambda x: torch.linalg.lu(x)[1], backend="mock_backend")(torch.rand(4, 4))

    names = [type(one).__name__ for one in default_constraints(mock_settings())]
    assert names == ["ShapeConstraint", "DtypeConstraint", "MemoryConstraint", "LayoutConstraint",
                     "UnsupportedOpsConstraint"]  # fmt: skip


def test_a_model_agrees_with_the_mock_backend_and_is_summarised(run: store.Run, tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128))
    harness = KernelDiffHarness(
        model,
        (torch.randn(16, 128),),
        model_name="tiny_mlp",
        reference_backend="eager",
        test_backend=mock_backend,
    )

    report = harness.compare(generate_visualizations=True, folder=tmp_path)

    assert report.passed and report.plots == ()
    assert report.summary().startswith("tiny_mlp: mock_backend against eager: all results agree\n")
    assert {"output", "grad of 0.weight"} <= {one.name for one in report.results}


def test_a_tensor_of_inductor_agrees_with_eager_and_so_does_the_whole_model() -> None:
    model, x = torch.nn.Linear(8, 8), torch.rand(4, 8)
    result = compare_tensors(torch.compile(model)(x), model(x))

    assert f"Match: {result.passed}" == "Match: True"
    assert float(f"{result.max_absolute_error:.2e}") < 1e-5
    assert KernelDiffHarness(model, (x,)).compare().passed


def test_a_model_output_is_compared_field_by_field(run: store.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOCK_STRICT", "0")  # attention leaves tensors that are not contiguous
    pytest.importorskip("transformers", reason="`make test` installs transformers")
    bert = load_case("bert:small=true").build("cpu")
    config = ComparisonConfig(flatten_lists=True)
    harness = KernelDiffHarness(
        bert.fn, bert.args, bert.kwargs, test_backend=mock_backend, comparison_config=config
    )

    report = harness.compare()

    assert report.passed
    assert {"output.last_hidden_state", "output.pooler_output"} <= {one.name for one in report.results}


def test_the_first_program_of_the_page_runs(run: store.Run) -> None:
    (program, *_) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/backend.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {"model": torch.nn.Linear(8, 8)}
    exec(program, names)

    x = torch.rand(8, 8)
    torch.testing.assert_close(names["checked"](x), names["model"](x))
    torch.compiler.reset()
    torch.testing.assert_close(names["compiled"](x), names["model"](x))
    assert {one.backend for one in run.records(CheckedGraph)} == {"mock_backend", "aot_mock_backend"}


def test_every_import_and_command_of_the_page_for_users_of_inductor_debug_exists() -> None:
    page = (ROOT / "docs/validating.md").read_text().partition("## Coming from inductor-debug")[2]
    here = [row.split("|")[2] for row in page.splitlines() if row.startswith("| `")]
    for line in re.findall(r"`(from tracing[^`]*)`", "".join(here)):
        exec(line, {})

    commands = set(re.findall(r"`tracing (\w+)", "".join(here)))
    assert {"list", "guards", "check", "bench", "clean"} <= commands
    assert commands <= {*COMMANDS}


def test_every_exported_name_can_be_imported() -> None:
    assert [name for name in tracing.__all__ if getattr(tracing, name, None) is None] == []
    assert [name for name in tracing.backend.__all__ if not hasattr(tracing.backend, name)] == []
