"""Functions that Dynamo does not trace."""

from __future__ import annotations

import torch

from tracing.upstream.torch import dynamo


def test_the_contract_holds_with_the_installed_versions() -> None:
    dynamo.contract()


def test_an_untraced_function_is_called_and_breaks_the_graph() -> None:
    calls: list[int] = []
    compiled = torch.compile(dynamo.untraced(lambda x: calls.append(1) or x + 1), backend="eager")

    assert compiled(torch.ones(1)).item() == 2
    assert calls == [1]


def test_a_function_that_has_to_be_one_graph_runs_as_it_is_written_and_compiles_later() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)

    with dynamo.nothing_compiled():
        assert torch.compile(lambda x: x + 1, fullgraph=True)(torch.ones(1)).item() == 2
        assert compiled(torch.ones(1)).item() == 2
    with dynamo.compiled_calls_reported():
        assert torch.compile(lambda x: x + 1, fullgraph=True)(torch.ones(1)).item() == 2
    assert compiled(torch.ones(1)).item() == 2
