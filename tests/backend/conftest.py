"""Fixtures of the tests of backends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from handmade.records import new_run

from tracing import store
from tracing.backend.check_record import checks_recorded
from tracing.upstream.inductor.config import settings_changed


@pytest.fixture
def run(tmp_path: Path) -> Iterator[store.Run]:
    """The run into which backends record while the test runs; nothing is compiled before it."""
    writer = new_run(tmp_path / "runs")
    torch.compiler.reset()
    # a header that is compiled once for all kernels pays off for a hundred of them
    with checks_recorded(writer), settings_changed({"cpp_cache_precompile_headers": False}):
        yield store.Run(writer.path)
    writer.close()
    torch.compiler.reset()
