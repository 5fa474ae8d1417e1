"""Which passes change a graph before Inductor receives it, in runs that are built by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_compiler_divergence import RENAMED, A, B, a_run

from tracing.analyze.graphs.changing_passes import earlier_passes
from tracing.model import CompiledGraph

GRAPH = CompiledGraph(0, "0/0", "forward", "", "", "", "", "", "")


@pytest.mark.parametrize(
    ("texts", "passes"),
    [
        ([A, A, B, B, B, B, B, B], ()),  # AOTAutograd writes it in other operators
        ([A, A, RENAMED, A, A, A, B, B], ()),  # a post-grad pass
        ([A, B, B, A, A, A, A, A], ("a pre-grad pass without a name", "joint pass fold")),
    ],
)
def test_pre_grad_and_joint_passes_that_change_a_graph_are_named(
    texts: list[str], passes: tuple[str, ...], tmp_path: Path
) -> None:
    assert earlier_passes(a_run(tmp_path, texts), GRAPH) == passes


def test_a_run_without_graph_passes_does_not_know_them(tmp_path: Path) -> None:
    assert earlier_passes(a_run(tmp_path, []), GRAPH) is None
