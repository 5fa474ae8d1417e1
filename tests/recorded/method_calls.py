"""Counts the calls of a function while a test runs."""

from __future__ import annotations

from typing import Any

import pytest


def calls_of(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[None]:
    """An entry for each call of a function; their arguments are not kept."""
    original, calls = getattr(owner, name), list[None]()

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, counted)
    return calls
