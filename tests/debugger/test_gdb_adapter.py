"""gdb's own debug adapter, at requests that cross each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from debugger.dap import Adapter
from debugger.native import WAIT, spawned
from debugger.test_values import replayed


@pytest.fixture
def adapter(recorded_run: Path, tmp_path: Path) -> Iterator[Adapter]:
    entry = replayed("triton-gdb", recorded_run, tmp_path)
    adapter = spawned(entry)
    try:
        adapter.start(entry, {})
        yield adapter
    finally:
        adapter.close()


def test_a_step_that_starts_while_the_editor_reads_frames_ends_with_frames(adapter: Adapter) -> None:
    stop = adapter.event("stopped", WAIT)
    listed = []
    for _ in range(10):
        adapter.send("next", threadId=stop["threadId"])
        crossing = adapter.send("stackTrace", threadId=stop["threadId"], startFrame=1, levels=19)
        stop = adapter.event("stopped", WAIT)
        crossing.get(timeout=WAIT)
        listed.append(len(adapter.frames(stop, levels=1)))

    assert listed == [1] * 10
