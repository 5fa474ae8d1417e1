"""Graphs after each of Inductor's passes."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.inductor import graph_pass_observer


def test_the_contract_holds_with_the_installed_versions() -> None:
    graph_pass_observer.contract()


def test_a_missing_function_of_the_passes_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(graph_pass_observer.compile_fx, "_recursive_joint_graph_passes")

    with pytest.raises(Broken, match="_recursive_joint_graph_passes"):
        graph_pass_observer.contract()
