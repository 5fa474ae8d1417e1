"""Autocast on this thread: which types of device compute in less precision, and in which dtype."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_DEVICES = "cpu", "cuda"


@contextmanager
def autocast_restored() -> Iterator[None]:
    """Leaves autocast as it was, also if a graph that enters it raises and does not leave it."""
    before = [(one, torch.is_autocast_enabled(one), torch.get_autocast_dtype(one)) for one in _DEVICES]
    cached = torch.is_autocast_cache_enabled()
    depth = torch.autocast_increment_nesting()
    try:
        yield
    finally:
        while (left := torch.autocast_decrement_nesting()) >= depth:
            pass
        if not left:
            torch.clear_autocast_cache()
        for device, enabled, dtype in before:
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, dtype)
        torch.set_autocast_cache_enabled(cached)
