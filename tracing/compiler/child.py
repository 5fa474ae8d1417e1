"""Call a function in a child process, because the compiler may abort, hang, or change process-wide settings.

The child is a fork, so imports are warm, and nothing that it does stays in this process: no LLVM options, no
counters, no corrupted heap. A process that has opened a GPU cannot fork a child that uses it: then the child
is a new program instead.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import io
import logging
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from _frozen_importlib import _module_locks  # type: ignore[attr-defined]
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from tracing.compiler.stalled_child import StallWatch
from tracing.errors import Problem, message

# Acquired before anything that takes a lock, released after the fork: a lock that another thread holds at a
# fork is never released in the child. Packages that look after their locks refuse two forks at a time:
# filelock
_forking = threading.Lock()
_IMPORTS = 10.0  # seconds that a fork waits for imports of other threads: a program may run inside of one
_libc = ctypes.CDLL(None)
_popen = subprocess.Popen.__init__
_PR_SET_PDEATHSIG = 1  # Source: prctl(2)
_HEADER = struct.Struct("<cI")  # header of a message from a child: its kind, and its size in bytes
_MESSAGE, _ANSWER = b"s", b"a"
# signals that a fault of the executed code causes: the next call ends by them, too
_FAULTS = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP")
_GPUS = ("/dev/nvidia", "/dev/kfd")
_parent: list[int] = []  # of a child, the pipe to the process that waits for it


@dataclass(frozen=True, slots=True)
class ChildResult:
    """The result of a call in a child process, or how the child ended."""

    result: Any  # None if it did not return
    failure: str  # "" if it returned; else the exception, the signal that ended it, or the time limit
    timed_out: bool
    stderr: str  # of the child and of what it started
    seconds: float
    signal: str = ""  # "SIGABRT", where one ended it
    # time, memory or disk ran out, or a user killed it: the next call may end differently
    transient: bool = False


def opened_gpu() -> bool:
    """True if this process has opened a GPU, so that its forks cannot use one."""
    for path in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):  # that of /proc/self/fd itself
            if str(path.readlink()).startswith(_GPUS):
                return True
    return False


def send_message(text: str) -> None:
    """Send a message to the parent of this child; does nothing outside of a child."""
    for pipe in _parent:
        _send(pipe, _MESSAGE, text.encode())


def in_child(
    call: Callable[[], Any],
    seconds: float | None,
    *,
    received: Callable[[str], None] | None = None,
    waits: Callable[[str], None] | None = None,
    patience: float = 0.0,
    program: Sequence[str] = (),
) -> ChildResult:
    """Call a function in a forked child.

    call     -- its result must consist of JSON values and bytes; it must not use a GPU that this process
                has opened
    seconds  -- time limit, after which the child and its descendants are killed; None: no limit
    received -- receives each message that the child sends with `send_message`
    waits    -- receives the position at which the child waits, if it neither sends a message nor computes
    patience -- seconds that an interrupted child has to end by itself
    program  -- a command that makes the call instead, with `respond`; a pipe's number is appended to it

    Cost: some 10 ms beyond the call. The child ends if this process is interrupted or ends for any
    reason, and so do processes that the child started with subprocess.
    """
    started = time.perf_counter()
    deadline = None if seconds is None else started + seconds
    with _forking:
        stderr = _stderr()
        reader, writer = os.pipe()  # another thread's child must not have its ends, or it would keep it open
        parent, child = os.getpid(), _fork()
        if child == 0:
            _forking.release()  # the child may have children
            os.close(reader)
            _run(call, writer, stderr.fileno(), parent, program)
        os.close(writer)
    with stderr:
        with suppress(OSError):  # parent and child both set it; the first one counts
            os.setpgid(child, child)
        try:
            stall = StallWatch(child, stderr.fileno(), waits) if waits is not None else None
            answer = _read(reader, deadline, received, stall)
        except KeyboardInterrupt:
            _interrupt(child, patience)
            raise
        finally:
            os.close(reader)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)  # kills a ptxas that outlived the child, too
            status = os.waitpid(child, 0)[1]
        stderr.seek(0)
        printed = stderr.read().decode(errors="replace")
    died = signal.Signals(os.WTERMSIG(status)).name if not answer and os.WIFSIGNALED(status) else ""
    result, failure, transient = _answer(answer, died, seconds or 0)
    timed_out, took = answer is None, time.perf_counter() - started
    return ChildResult(result, failure, timed_out, printed, took, "" if timed_out else died, transient)


def _fork() -> int:
    # If another thread imports a module during the fork, the module's lock is never released in the child,
    # which may import the same module. So such a child ends at once. Imports of other threads cannot be
    # blocked: os.fork takes the import lock after locks of packages, so holding it could cause a deadlock
    deadline = time.perf_counter() + _IMPORTS
    while True:
        while (late := time.perf_counter() > deadline) is False and _others_import():
            time.sleep(0.001)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            usable = late or not _others_import()
            os.write(writer, b"y" if usable else b"n")
            if not usable:
                os._exit(0)
        try:
            if child == 0 or os.read(reader, 1) != b"n":
                return child
        finally:
            os.close(reader)
            os.close(writer)
        os.waitpid(child, 0)


def _others_import() -> bool:
    locks = [lock for lock in (reference() for reference in list(_module_locks.values())) if lock is not None]
    return any(lock.owner != threading.get_ident() for lock in locks)


def _stderr() -> IO[bytes]:
    # tempfile takes a lock for its first file and for its first name, and none afterwards, as in the child
    with tempfile.NamedTemporaryFile():
        return tempfile.TemporaryFile()


def respond(call: Callable[[], Any], pipe: int) -> None:
    """Make a call, and send its result or exception through a pipe to the parent."""
    _parent[:] = [pipe]
    try:
        outcome: dict[str, Any] = {"result": call()}
    except Problem as problem:
        outcome = {"failure": problem.problem}
    except Exception as error:
        outcome = {"failure": f"{type(error).__name__}: {message(error)}"}
        outcome["transient"] = isinstance(error, (MemoryError, OSError))
    _send(pipe, _ANSWER, msgspec.msgpack.encode(outcome))


def _run(call: Callable[[], Any], writer: int, stderr: int, parent: int, program: Sequence[str]) -> None:
    # never returns: neither the parent's buffers nor its exit handlers are the child's to run
    try:
        os.setpgid(0, 0)
        die_with(parent)
        faulthandler.disable()  # an abort is an expected result: print no stack
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # and write no core file
        os.dup2(stderr, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        _renew_streams()
        dying = functools.partial(die_with, os.getpid())
        subprocess.Popen.__init__ = functools.partialmethod(_popen, preexec_fn=dying)  # type: ignore[assignment]
        if program:
            os.set_inheritable(writer, True)
            os.execv(program[0], [*program, str(writer)])
        respond(call, writer)
    finally:
        os._exit(0)


def _renew_streams() -> None:
    # another thread may have printed or logged at the fork, and so hold the lock of a stream's buffer
    sys.stdout, sys.stderr = _unbuffered(1), _unbuffered(2)
    loggers = [logging.getLogger(), *logging.getLogger().manager.loggerDict.values()]
    for handler in [one for logger in loggers for one in getattr(logger, "handlers", ())]:
        if isinstance(handler, logging.StreamHandler):
            with suppress(AttributeError, OSError, ValueError):  # a file of another kind, or closed
                handler.stream = _unbuffered(handler.stream.fileno())


def _unbuffered(number: int) -> io.TextIOWrapper:
    raw = io.FileIO(number, "w", closefd=False)
    return io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the thread that forked it ends.

    parent -- the process of that thread
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the child has ended already
        os._exit(1)


def _send(pipe: int, kind: bytes, content: bytes) -> None:
    data = _HEADER.pack(kind, len(content)) + content
    while data:
        data = data[os.write(pipe, data) :]


def _interrupt(child: int, patience: float) -> None:
    # forward Ctrl-C, which reaches only this process
    if patience:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGINT)
    deadline = time.perf_counter() + patience
    while time.perf_counter() < deadline:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            break
        time.sleep(0.02)


def _read(
    reader: int, deadline: float | None, received: Callable[[str], None] | None, stall: StallWatch | None
) -> bytes | None:
    # the answer, b"" if none came, None if time was up
    data, answer = bytearray(), b""
    while True:
        waiting = [] if stall is None else [stall.seconds_left()]
        if deadline is not None:
            waiting.append(max(0.0, deadline - time.perf_counter()))
        if not select.select([reader], [], [], min(waiting, default=None))[0]:
            if deadline is not None and time.perf_counter() >= deadline:
                return None
            if stall is not None:
                stall.check()
            continue
        part = os.read(reader, 1 << 20)
        if not part:
            return answer
        data += part
        while len(data) >= _HEADER.size:
            kind, size = _HEADER.unpack_from(data)
            if len(data) < _HEADER.size + size:
                break
            content = bytes(data[_HEADER.size : _HEADER.size + size])
            del data[: _HEADER.size + size]
            if stall is not None:
                stall.reset()
            if kind == _ANSWER:
                answer = content
            elif received is not None:
                received(content.decode())


def _answer(answer: bytes | None, died: str, seconds: float) -> tuple[Any, str, bool]:
    # the result, the failure, and whether the next call may end differently
    if answer is None:
        return None, f"it did not end within {seconds:g} s", True
    if not answer:
        failure = f"it was ended by {died}" if died else "it ended without a message"
        return None, failure, died not in _FAULTS
    content = msgspec.msgpack.decode(answer)
    return content.get("result"), content.get("failure", ""), content.get("transient", False)
