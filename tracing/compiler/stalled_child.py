"""Reports the position at which a child process waits that neither sends messages nor computes.

A child without a time limit waits for ever for a lock that nobody releases. A child that waits for a GPU or
the network is not distinguishable from it, so no child is killed: the user reads where it waits, and decides.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SECONDS = 30.0  # between two checks of a child that sends no message
_IDLE = 0.01  # of a processor: one that polls for a lock uses less
_ASK = signal.SIGRTMAX - 1  # a child that catches it answers with its frames
_PATIENCE = 1.0  # seconds for the answer
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)
_FRAMES = 3  # that are reported, the innermost first
_TICKS = os.sysconf("SC_CLK_TCK")


def answer_with_frames() -> None:
    """Have this process write the Python frames of its main thread to stderr when its parent asks."""
    faulthandler.register(_ASK, os.dup(2), all_threads=False)


class StallWatch:
    """Watches one child for a stall; each message of the child resets it."""

    def __init__(self, child: int, stderr: int, waits: Callable[[str], None]) -> None:
        """stderr -- descriptor of the child's stderr
        waits  -- receives the position at which the child waits, once"""
        self._child, self._stderr, self._waits = child, stderr, waits
        self.reset()

    def reset(self) -> None:
        """The child sent a message."""
        self._look = time.perf_counter() + SECONDS
        self._used: float | None = None  # seconds of processor time up to the last look
        self._reported = False

    def seconds_left(self) -> float:
        """Seconds until the next look at the child."""
        return max(0.0, self._look - time.perf_counter())

    def check(self) -> None:
        """Check the child when it is time: the second check shows whether it has computed since the first."""
        if self.seconds_left():
            return
        self._look = time.perf_counter() + SECONDS
        before, self._used = self._used, _processor_seconds(self._child)
        if before is None or self._reported or self._used - before > _IDLE * SECONDS:
            return
        self._reported = True
        where = f" in {' ← '.join(frames)}" if (frames := self._frames()) else ""
        idle = f"it has used no processor for {SECONDS:g} s"
        self._waits(f"process {self._child} waits{where}: {idle}; `kill {self._child}` ends it")

    def _frames(self) -> list[str]:
        if not _catches(self._child, _ASK):  # the signal would end it
            return []
        start = os.fstat(self._stderr).st_size
        with suppress(ProcessLookupError):
            os.kill(self._child, _ASK)
        deadline, text = time.perf_counter() + _PATIENCE, b""
        while time.perf_counter() < deadline:
            time.sleep(0.05)
            # a read would move the end at which the child writes
            more = os.pread(self._stderr, 1 << 20, start)
            if more and more == text:
                break
            text = more
        frames = _FRAME.findall(text.decode(errors="replace"))[:_FRAMES]
        return [f"{name} ({Path(file).name}:{line})" for file, line, name in frames]


def _processor_seconds(process: int) -> float:
    # of a process and of all that it started. Source: proc_pid_stat(5)
    used: dict[int, tuple[int, int]] = {}  # parent and ticks, by process
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            used[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    ticks, family = 0, [process]
    for one in family:
        ticks += used.get(one, (0, 0))[1]
        family += [other for other, (parent, _) in used.items() if parent == one]
    return ticks / _TICKS


def _catches(process: int, number: int) -> bool:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    return bool(int(status.partition("SigCgt:")[2].split(None, 1)[0], 16) >> (number - 1) & 1)
