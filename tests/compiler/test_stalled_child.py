"""A child that waits is reported with the line at which it waits, and is not ended."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time

import pytest

from tracing.compiler import stalled_child
from tracing.compiler.child import in_child

ANSWERS = """
import sys, time
from tracing.compiler.child import respond
respond(lambda: time.sleep(3), int(sys.argv[-1]))
"""


def _wait_for_a_lock() -> None:
    stalled_child.answer_with_frames()
    lock = threading.Lock()
    with lock:
        lock.acquire()


def _compute(seconds: float) -> int:
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass
    return 7


def test_a_child_that_waits_for_a_lock_is_named_with_its_line_and_can_be_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stalled_child, "SECONDS", 0.3)
    said: list[str] = []

    def end(where: str) -> None:
        said.append(where)
        command = re.search(r"`kill (\d+)` ends it", where)
        assert command is not None
        os.kill(int(command[1]), signal.SIGTERM)

    ended = in_child(_wait_for_a_lock, None, waits=end)

    line = _wait_for_a_lock.__code__.co_firstlineno + 4
    assert [f"waits in _wait_for_a_lock (test_stalled_child.py:{line}) ← " in one for one in said] == [True]
    assert ended.signal == "SIGTERM"


def test_a_child_that_computes_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalled_child, "SECONDS", 1.0)
    said: list[str] = []

    assert in_child(lambda: _compute(2.5), None, waits=said.append).result == 7
    assert said == []


def test_a_child_that_cannot_answer_is_reported_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalled_child, "SECONDS", 0.3)
    said: list[str] = []

    program = [sys.executable, "-c", ANSWERS]
    ended = in_child(lambda: None, 60, waits=said.append, program=program)

    assert ["waits: it has used no processor" in one for one in said] == [True]
    assert (ended.failure, ended.timed_out) == ("", False)
