"""Dynamo's queries of the device while it traces."""

from __future__ import annotations

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.torch import dynamo_tracing


def test_the_contract_holds_with_the_installed_versions() -> None:
    dynamo_tracing.contract()


def test_a_missing_create_proxy_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(dynamo_tracing.SubgraphTracer, "create_proxy")

    with pytest.raises((Broken, AttributeError), match="create_proxy"):
        dynamo_tracing.contract()
