"""The programs that users of a mock backend write first, and the page that documents them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from commands import ROOT

import tracing
from tracing import aot_mock_backend, mock_backend, store
from tracing.backend import ConstraintsViolated, default_constraints
from tracing.backend.constraints import DtypeConstraint, ShapeConstraint
from tracing.environment import mock_settings
from tracing.model import CheckedGraph, Violation


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
        self.net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))

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

    # with float32 weights the program is wrong in eager, too: torch refuses it before a backend sees it
    wrong = weights is torch.float32
    expected: Any = RuntimeError if wrong else ConstraintsViolated
    with pytest.raises(expected) as raised:
        compiled(torch.randn(32, 64))

    if not wrong:
        assert {one.found for one in raised.value.violations} == {"float64"}
        assert "x.double()" in str(raised.value)


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


def test_the_first_program_of_the_page_runs(run: store.Run) -> None:
    (program, *_) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/backend.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {"model": torch.nn.Linear(8, 8)}
    exec(program, names)

    x = torch.rand(8, 8)
    torch.testing.assert_close(names["checked"](x), names["model"](x))
    torch.compiler.reset()
    torch.testing.assert_close(names["compiled"](x), names["model"](x))
    assert {one.backend for one in run.records(CheckedGraph)} == {"mock_backend", "aot_mock_backend"}


def test_every_exported_name_can_be_imported() -> None:
    assert [name for name in tracing.__all__ if getattr(tracing, name, None) is None] == []
    assert [name for name in tracing.backend.__all__ if not hasattr(tracing.backend, name)] == []
