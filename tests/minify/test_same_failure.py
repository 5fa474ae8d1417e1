"""A search keeps the failure with which it began: no input becomes one for which values are not finite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch._inductor import lowering

from tracing.analyze.minify.graph_edit import GraphEdit
from tracing.analyze.minify.graph_search import GraphSearch
from tracing.analyze.minify.minify_events import Minimal
from tracing.analyze.minify.trial import Trial
from tracing.minify.captured_graph import captured_graphs
from tracing.minify.graph_trials import GraphTrials
from tracing.minify.nonfinite import COMPILED, nonfinite_values
from tracing.minify.predicate import Fails
from tracing.minify.small_graph import SmallGraph, small_graph
from tracing.model import Case, Workload
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.upstream.inductor.config import settings_changed

DEVICE = Device("sm_90")


def experiment(fn: Callable[..., Any], *args: torch.Tensor) -> Experiment:
    return Experiment(Case("small", Path(__file__), "", lambda device: Workload(fn, args)), DEVICE, 0)


def normalized(x: torch.Tensor) -> torch.Tensor:
    return (x * torch.rsqrt(x.square().sum(-1, keepdim=True))).tanh()


def entropy(x: torch.Tensor) -> torch.Tensor:
    p = x / x.sum()
    return -(p * torch.log(p)).sum()


@pytest.mark.parametrize(
    ("fn", "operator"), [(normalized, "rsqrt"), pytest.param(entropy, "log", marks=pytest.mark.soak)]
)
def test_zeros_that_make_a_finite_value_infinite_are_not_accepted(
    fn: Callable[..., Any], operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    overload = getattr(torch.ops.aten, operator).default
    original, add = lowering.lowerings[overload], lowering.lowerings[torch.ops.aten.add.Tensor]
    monkeypatch.setitem(lowering.lowerings, overload, lambda x: original(add(x, 0.02)))
    trials = GraphTrials(experiment(fn, torch.rand(2, 4) + 0.5), Fails())

    def evaluate(edit: GraphEdit) -> Trial:
        with settings_changed({"force_disable_caches": True}):
            return msgspec.convert(trials.execute(edit), type=Trial)

    whole = trials.whole(0)
    wanted = evaluate(whole)
    *_, smallest = GraphSearch(evaluate, trials.nodes(0), whole, wanted, 40).events()

    assert isinstance(smallest, Minimal)
    assert (wanted.kind, wanted.nonfinite) == ("differs", ())
    assert f"torch.{operator}(" in smallest.trial.code and smallest.trial.nodes == 3
    assert "zeros" not in dict(smallest.edit.changes) and smallest.trial.nonfinite == ()


def masked(x: torch.Tensor) -> torch.Tensor:
    scores = torch.empty_like(x).copy_(x)
    hidden = scores.masked_fill(x > 0, -torch.inf)
    return torch.softmax(hidden, -1)


def test_values_that_a_graph_computes_are_named_and_recorded_inputs_are_not() -> None:
    (captured,) = captured_graphs(experiment(masked, torch.tensor([[1.0, -1.0]])))
    names = [node.name for node in captured.nodes()]

    def nonfinite(small: SmallGraph, result: float) -> list[str]:
        return nonfinite_values(small, {"output 0": torch.tensor(result)}, {"output 0": torch.tensor(0.0)})

    assert nonfinite(small_graph(captured, GraphEdit(0, tuple(names))), 1.0) == ["hidden"]
    only_softmax = small_graph(captured, GraphEdit(0, (names[-1],)))
    assert nonfinite(only_softmax, 1.0) == []
    assert nonfinite(only_softmax, torch.nan) == [COMPILED]
