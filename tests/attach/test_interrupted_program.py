"""An interrupted `tracing debug` of a program ends the program and its children, whatever they ignore."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from tracing.attach import terminal
from tracing.attach.compiling import wanted_of
from tracing.attach.terminal import Gdb, debugged

PROGRAM = """
import pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(60)
"""


def test_an_interruption_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_GRACE", 0.2)
    started = tmp_path / "child"
    command = [sys.executable, "-c", PROGRAM, str(started)]

    def waited(seconds: float) -> None:
        if started.exists() and started.read_text():
            raise KeyboardInterrupt
        threading.Event().wait(seconds)

    monkeypatch.setattr(terminal.time, "sleep", waited)
    with pytest.raises(KeyboardInterrupt):
        debugged(command, dict(os.environ), tmp_path, wanted_of(":: cse"), Gdb("gdb"), print)
    monkeypatch.undo()

    assert _ends(int(started.read_text()))


def _ends(pid: int) -> bool:
    for _ in range(100):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False
