"""The steps of a compile, in words."""

from __future__ import annotations

import torch

from tracing.upstream.inductor import compile_steps


def test_the_contract_holds_with_the_installed_versions() -> None:
    compile_steps.contract()


def test_a_node_is_named_by_its_operator_and_the_last_line_of_its_stack() -> None:
    graph = torch.fx.Graph()
    node = graph.call_function(torch.ops.aten.mul.Tensor, (graph.placeholder("x"), 2))
    node.meta["stack_trace"] = (
        'File "/a/train.py", line 3, in step\n  f(x)\nFile "/a/model.py", line 12, in f'
    )

    assert compile_steps.node_text(node) == "aten.mul.Tensor at model.py:12"
