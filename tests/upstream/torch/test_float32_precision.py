"""The precision in which a GPU multiplies float32."""

from __future__ import annotations

from tracing.upstream.torch.float32_precision import contract


def test_this_torch_keeps_the_contract() -> None:
    contract()
