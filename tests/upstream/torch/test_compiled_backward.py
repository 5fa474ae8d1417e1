from __future__ import annotations

from tracing.upstream.torch import compiled_backward


def test_contract() -> None:
    compiled_backward.contract()
