"""Graphs as text, and graphs of a compile in a run."""

from __future__ import annotations

from pathlib import Path

import torch
import torch._inductor.config as inductor
from handmade.records import new_run
from torch.fx.experimental.proxy_tensor import make_fx

from tracing.model import GraphText
from tracing.record.graphs.graph_passes import graph_passes_recorded, graph_text
from tracing.store import Run
from tracing.upstream.inductor import graph_pass_observer


def test_a_graph_is_text_with_a_node_a_line() -> None:
    graph = torch.fx.symbolic_trace(lambda x: torch.relu(x[1:]).to(torch.float16) + 1)

    assert graph_text(graph).splitlines() == [
        "%x = placeholder",
        "%getitem = _operator.getitem(%x, slice(1, None, None))",
        "%relu = torch.relu(%getitem)",
        "%to = to(%relu, torch.float16)",
        "%add = _operator.add(%to, 1)",
        "output(%add)",
    ]


def test_a_graph_inside_of_a_graph_is_indented() -> None:
    inner = torch.fx.symbolic_trace(lambda x: x + 1)
    graph = torch.fx.Graph()
    graph.get_attr("body")
    text = graph_text(torch.fx.GraphModule({"body": inner}, graph))

    assert text.splitlines()[:2] == ["%body = get_attr body", "    %x = placeholder"]


def test_a_run_holds_a_graph_before_and_after_each_pass(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    graph = make_fx(lambda x: x.clone() + 1)(torch.ones(4))
    with graph_passes_recorded(writer):
        graph_pass_observer.compile_fx._recursive_joint_graph_passes(graph)
    writer.close()

    run = Run(writer.path)
    texts = {one.name: run.text(one.text) for one in run.records(GraphText) if one.part == "joint"}
    assert "aten.clone" in texts[""]
    assert "aten.clone" not in texts["remove_noop_ops"]
    assert list(texts)[-1] == "end"


def either(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: x.clone() + 1, lambda x: x.clone() - 1, (x,))


def test_after_a_pass_of_a_graph_inside_of_it_the_whole_graph_is_recorded(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    with graph_passes_recorded(writer), inductor.patch(force_disable_caches=True):
        torch.compile(either)(torch.ones(4))
    writer.close()

    run = Run(writer.path)
    texts = [run.text(one.text) for one in run.records(GraphText) if one.part in ("joint", "post-grad")]
    clones = [one.count("aten.clone") for one in texts]
    assert all("cond(" in one for one in texts)
    assert (clones[0], clones[-1]) == (2, 0) and sorted(clones, reverse=True) == clones
