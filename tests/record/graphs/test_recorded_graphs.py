"""A graph of any form leaves the program's compile as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import tracing
from tracing.model import CompiledGraph, NotCovered, TracedCall
from tracing.record.graphs import graph_recorder
from tracing.record.graphs.graph_nodes import graph_json
from tracing.store.graph_file import read_schedule


def test_a_constant_in_an_opaque_layout_has_no_elements() -> None:
    class Opaque(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.ones(2, 2).to_mkldnn())
            self.register_buffer("plain", torch.ones(2))

    module, graph = Opaque(), torch.fx.Graph()
    weight, plain = graph.get_attr("weight"), graph.get_attr("plain")
    graph.output((weight, plain))
    nodes = graph_json(torch.fx.GraphModule(module, graph))["nodes"]

    assert [one.get("constant") for one in nodes[:2]] == [
        None,
        {"dtype": "float32", "shape": [2], "elements": [1.0, 1.0]},
    ]


def test_a_program_with_frozen_weights_is_recorded(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 2)).eval()
    with torch.no_grad(), tracing.recording(runs=tmp_path, passes=False) as run:
        torch.compile(model, options={"freezing": True})(torch.ones(1, 3, 6, 6))

    assert len(list(run.launches())) > 0


def test_both_of_two_nested_recordings_have_a_graph_that_is_compiled_in_the_inner_one(tmp_path: Path) -> None:
    torch._dynamo.reset()
    with (
        torch._inductor.config.patch(force_disable_caches=True),
        tracing.recording(runs=tmp_path, passes=False, keep_inputs=True, name="outer") as outer,
        tracing.recording(runs=tmp_path, passes=False, keep_inputs=True, name="inner") as inner,
    ):
        torch.compile(lambda x: (x.sin() + 3) @ x)(torch.ones(5, 5))

    for run in (outer, inner):
        [graph], [_] = run.records(CompiledGraph), run.records(TracedCall)
        assert [one.kind for one in read_schedule(run, graph).steps] == ["kernel", "library"]


def test_an_error_of_the_recorder_in_a_compile_is_not_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unable(*given: object) -> None:
        raise ValueError("a new kind of node")

    monkeypatch.setattr(graph_recorder, "graph_json", unable)
    torch._dynamo.reset()
    with tracing.recording(runs=tmp_path, passes=False) as run:
        torch.compile(lambda x: x.sin() + 3)(torch.ones(5))

    assert len(list(run.launches())) == 1 and not list(run.records(CompiledGraph))
    graphs = [one.what for one in run.records(NotCovered) if "graph" in one.what]
    assert graphs == ["the code of a graph that Inductor compiled: ValueError: a new kind of node"]


def test_the_offset_of_a_view_that_depends_on_data_or_sizes_adds_no_guard(tmp_path: Path) -> None:
    def views(x: torch.Tensor, rows: int) -> torch.Tensor:
        return x[rows:].sin()

    torch._dynamo.reset()
    with (
        tracing.recording(runs=tmp_path, passes=False) as run,
        torch._dynamo.config.patch(error_on_recompile=True, capture_scalar_outputs=True),
    ):
        compiled = torch.compile(views, dynamic=True)
        for rows in (2, 3, 0):
            compiled(torch.ones(10, 2), rows)
        torch.compile(lambda x, at: x[at.item()] * 2, fullgraph=True)(torch.ones(4, 2), torch.tensor(2))

    assert len(list(run.records(CompiledGraph))) == 2
    assert not any("graph" in one.what for one in run.records(NotCovered))
