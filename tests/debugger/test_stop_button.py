"""Stop in the editor, at a C++ stop, ends gdb and the program at the first press, and leaves no process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from debugger.conftest import PROGRAMS
from debugger.editor import Editor, chosen
from debugger.mi import Gdb
from debugger.native import WAIT
from debugger.test_f5 import OPEN_FILE

LIMIT = 60  # seconds, of a busy machine; an idle one takes less than 3


def state(pid: int) -> str:
    """Of a process, as in /proc; "" if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def wait_until(done: Callable[[], bool]) -> None:
    started = time.monotonic()
    while not done():
        assert time.monotonic() - started < LIMIT, "it never ended"
        time.sleep(0.05)


@pytest.fixture
def held(request: pytest.FixtureRequest, launch: dict[str, Any]) -> Iterator[tuple[Editor, Gdb, int]]:
    """An editor, and gdb with the process that it has stopped in a pass: the program, or a worker of it."""
    editor = Editor(chosen(launch, OPEN_FILE, PROGRAMS / request.param, kernel="add"), {})
    try:
        native = editor.natives.get(timeout=WAIT)
        gdb = Gdb(native)
        try:
            gdb.run(f"-target-attach {native['processId']}")
            gdb.run("-exec-continue")
            gdb.stopped()
            yield editor, gdb, native["processId"]
        finally:
            gdb.close()
    finally:
        editor.close()


@pytest.mark.parametrize("held", ["forked.py"], indirect=True)
def test_stop_ends_gdb_and_the_stopped_process(held: tuple[Editor, Gdb, int]) -> None:
    editor, gdb, pid = held

    editor.sessions[0].send("disconnect", terminateDebuggee=True)  # the program cannot answer

    wait_until(lambda: gdb.process.poll() is not None and state(pid) in ("", "Z"))


@pytest.mark.parametrize("held", ["add.py"], indirect=True)
def test_gdb_ends_when_the_process_that_it_holds_is_killed(held: tuple[Editor, Gdb, int]) -> None:
    _, gdb, pid = held

    os.kill(pid, signal.SIGKILL)

    wait_until(lambda: gdb.process.poll() is not None)
