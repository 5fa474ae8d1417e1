"""After some failed attempts to attach gdb, a process is ended with one message."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tracing.attach.compiling import wanted_of
from tracing.attach.terminal import Gdb, debugged
from tracing.errors import Problem

WAITS = """
import os, sys, time
from pathlib import Path
from tracing.attach import compiling
now = compiling.Compiling(os.getpid(), "add", "ttgir", ("cse",), {}, (), "add:ttgir:cse", waiting=True)
compiling.write(Path(sys.argv[1]), now)
Path(sys.argv[1], "pid").write_text(str(os.getpid()))
time.sleep(60)
"""


def test_a_gdb_that_leaves_at_once_is_not_started_for_ever(tmp_path: Path) -> None:
    gdb, started = tmp_path / "gdb", tmp_path / "started"
    gdb.write_text(f"#!/bin/sh\necho started >> {started}\nexit 1\n")
    gdb.chmod(0o755)
    folder = tmp_path / "stop"
    folder.mkdir(mode=0o700)
    command = [sys.executable, "-c", WAITS, str(folder)]

    with pytest.raises(Problem, match="gdb left process"):
        debugged(command, os.environ, folder, wanted_of("add:ttgir:cse"), Gdb(str(gdb)), lambda said: None)

    assert started.read_text().count("started") == 3
    pid, deadline = int((folder / "pid").read_text()), time.monotonic() + 30
    while _runs(pid):
        assert time.monotonic() < deadline, "the program goes on"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
