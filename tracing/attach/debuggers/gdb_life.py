"""Ends gdb, under an editor, when its stopped process, or the program that started either of them, has ended.

gdb does not watch a stopped process: if that is killed, as by Stop in an editor, it stays a zombie, and gdb
waits for ever. A worker of a killed program stays stopped. In a terminal a person ends gdb.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import gdb

_SECONDS = 0.5  # between two checks


class _Held:
    # the process that gdb has stopped; 0: it runs, or there is none

    def __init__(self) -> None:
        self.pid = self.parent = 0

    def stopped(self, event: Any) -> None:
        pid = gdb.selected_inferior().pid
        # only of a program that was started for a stop: another one may outlive its parent
        self.parent = _state_and_parent(pid)[1] if _stops_for_us(pid) else 0
        self.pid = pid

    def runs(self, event: Any) -> None:
        self.pid = 0


def watch() -> None:
    """From now on, end gdb with the process that it holds, and with the program that started gdb."""
    if os.isatty(0):
        return
    held = _Held()
    gdb.events.stop.connect(held.stopped)
    gdb.events.cont.connect(held.runs)
    gdb.events.exited.connect(held.runs)
    _started(threading.Thread(target=_look, args=(held, os.getppid()), daemon=True))


def _started(thread: threading.Thread) -> None:
    # It takes no signals: gdb waits for its process until SIGCHLD wakes its main thread, and for ever if the
    # kernel gives the signal to another thread.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _look(held: _Held, editor: int) -> None:
    while os.getppid() == editor:
        pid, parent = held.pid, held.parent
        state, now = _state_and_parent(pid) if pid else ("", 0)
        if pid and held.pid == pid and (state in ("", "Z", "X") or parent not in (0, now)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            break
        time.sleep(_SECONDS)
    os._exit(0)  # quitting gdb would wait for its process; the kernel detaches it


def _stops_for_us(pid: int) -> bool:
    with suppress(OSError):
        return b"TRACING_STOP=" in Path(f"/proc/{pid}/environ").read_bytes()
    return False


def _state_and_parent(pid: int) -> tuple[str, int]:
    # of a process, "" and 0 if it has ended
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[1])
