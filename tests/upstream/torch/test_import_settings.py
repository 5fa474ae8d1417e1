"""Settings of torch that follow variables which are set after its import."""

from __future__ import annotations

from tracing.upstream.torch.import_settings import contract


def test_this_torch_keeps_the_contract() -> None:
    contract()
