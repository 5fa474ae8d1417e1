"""On a terminal a spinner stays in one line, and its text cannot control the terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

SPINS = r"""
import time
from tracing.cli.answers.terminal import safe_streams
from tracing.cli.app import err, spinner

with safe_streams():
    with spinner("first") as now:
        time.sleep(0.2)
        now("second \x1b[31m")
        time.sleep(0.2)
        print("of a case \x1b[32m")
    err.print("done")
"""


def shown(script: str) -> str:
    """What a terminal is sent."""
    controller, terminal = pty.openpty()
    variables = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen([sys.executable, "-c", script], stdout=terminal, stderr=terminal, env=variables):
        os.close(terminal)
        parts = []
        while part := _read(controller):
            parts.append(part)
    os.close(controller)
    return b"".join(parts).decode()


def _read(controller: int) -> bytes:
    try:
        return os.read(controller, 4096)
    except OSError:  # the program has ended
        return b""


def test_a_spinner_moves_the_cursor_and_its_text_does_not() -> None:
    text = shown(SPINS)

    assert "\x1b[2K" in text and "\\u001b[2K" not in text and "\\u000d" not in text
    assert "second \\u001b[31m" in text
    assert "of a case" in text and "of a case \x1b[32m" not in text
    assert re.search(r"\x1b\[2Kdone\r\n$", text)
