"""The parameters, buffers and submodules of a module."""

from __future__ import annotations

import torch

from tracing.upstream.torch import modules


def test_the_contract_holds_with_the_installed_versions() -> None:
    modules.contract()


def test_a_module_with_two_names_is_listed_under_both() -> None:
    outer, inner = torch.nn.Module(), torch.nn.Linear(1, 1)
    outer.first = outer.second = inner

    assert dict(modules.submodules_of(outer)) == {"first": inner, "second": inner}
