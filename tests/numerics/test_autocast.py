"""Autocast that a computation enters and does not leave."""

from __future__ import annotations

import pytest
import torch
from torch.amp.autocast_mode import _enter_autocast

from tracing.numerics.autocast import autocast_restored


@pytest.mark.parametrize("around", [False, True])
def test_autocast_is_that_of_before(around: bool) -> None:
    x = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.float16, enabled=around):
        before = (x @ x).dtype
        with pytest.raises(ValueError, match="by this test"), autocast_restored():
            _enter_autocast("cpu", torch.bfloat16, True, False)
            assert (x @ x).dtype == torch.bfloat16
            raise ValueError("by this test")
        assert (x @ x).dtype == before
        assert torch.is_autocast_cache_enabled()

    assert (x @ x).dtype == torch.float32
    assert torch.autocast_increment_nesting() == 1
    torch.autocast_decrement_nesting()
