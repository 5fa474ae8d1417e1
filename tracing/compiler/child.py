"""A call in a child process of its own: the compiler may abort, hang, or keep what it was once told.

The child is a fork, so what is imported is warm, and nothing that it does stays in this process: not LLVM's
options, not its counters, not a corrupted heap.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import os
import resource
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

import msgspec

from tracing.errors import Problem

# Held from before anything that takes a lock until after the fork: a lock that another thread holds at a fork
# is never released in the child. Packages that look after their locks refuse two forks at a time: filelock
_forking = threading.Lock()
_libc = ctypes.CDLL(None)
_popen = subprocess.Popen.__init__
_PR_SET_PDEATHSIG = 1  # Source: prctl(2)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call in a child ended."""

    result: Any  # None if it did not return
    failure: str  # "" if it returned; else what it raised, the signal that ended it, or that its time was up
    timed_out: bool
    stderr: str  # of the child and of what it started
    seconds: float
    signal: str = ""  # "SIGABRT", where one ended it


def in_child(call: Callable[[], Any], seconds: float) -> Ended:
    """Call a function in a forked child.

    call    -- its result must be made of what JSON has, and bytes; it must not touch a GPU that this process
               has used already
    seconds -- after which the child, and what it started, is killed

    Cost: some 10 ms beyond the call. An interruption of this process kills the child first, and so does the
    end of this process, whatever ends it; what the child started by way of subprocess dies with it.
    """
    started = time.perf_counter()
    with _forking:
        stderr = _stderr()
        reader, writer = os.pipe()  # another thread's child must not have its ends, or it would keep it open
        parent, child = os.getpid(), os.fork()
        if child == 0:
            _forking.release()  # the child may have children
            os.close(reader)
            _run(call, writer, stderr.fileno(), parent)
        os.close(writer)
    with stderr:
        with suppress(OSError):  # as the child does; whoever comes first
            os.setpgid(child, child)
        try:
            answer = _read(reader, started + seconds)
        finally:
            os.close(reader)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)  # also a ptxas that outlived it
            status = os.waitpid(child, 0)[1]
        stderr.seek(0)
        said = stderr.read().decode(errors="replace")
    died = signal.Signals(os.WTERMSIG(status)).name if not answer and os.WIFSIGNALED(status) else ""
    if answer is None:
        return Ended(None, f"it did not end within {seconds:g} s", True, said, _since(started))
    if not answer:
        failure = f"it was ended by {died}" if died else "it ended without a word"
        return Ended(None, failure, False, said, _since(started), died)
    content = msgspec.msgpack.decode(answer)
    return Ended(content.get("result"), content.get("failure", ""), False, said, _since(started))


def _stderr() -> IO[bytes]:
    # tempfile takes a lock for its first file and for its first name, and none afterwards, as in the child
    with tempfile.NamedTemporaryFile():
        return tempfile.TemporaryFile()


def _since(started: float) -> float:
    return time.perf_counter() - started


def _run(call: Callable[[], Any], writer: int, stderr: int, parent: int) -> None:
    # never returns: neither the parent's buffers nor its exit handlers are the child's to run
    try:
        os.setpgid(0, 0)
        _die_with(parent)
        faulthandler.disable()  # an abort is an answer here, and so is not worth
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a stack or a core
        os.dup2(stderr, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        dying = functools.partial(_die_with, os.getpid())
        subprocess.Popen.__init__ = functools.partialmethod(_popen, preexec_fn=dying)  # type: ignore[assignment]
        try:
            answer = {"result": call()}
        except Problem as problem:
            answer = {"failure": problem.problem}
        except Exception as error:
            answer = {"failure": f"{type(error).__name__}: {error}"}
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(msgspec.msgpack.encode(answer))
    finally:
        os._exit(0)


def _die_with(parent: int) -> None:
    # the kernel kills this process when the thread that forked it ends
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended already
        os._exit(1)


def _read(reader: int, deadline: float) -> bytes | None:
    # None: time was up
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.perf_counter()))
        if not ready:
            return None
        part = os.read(reader, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)
