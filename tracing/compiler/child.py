"""A call in a child process of its own: the compiler may abort, hang, or keep what it was once told.

The child is a fork, so what is imported is warm, and nothing that it does stays in this process: not LLVM's
options, not its counters, not a corrupted heap.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import select
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from tracing.errors import Problem

_forking = threading.Lock()  # packages that look after their locks at a fork refuse two at a time: filelock


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call in a child ended."""

    result: Any  # None if it did not return
    failure: str  # "" if it returned; else what it raised, the signal that ended it, or that its time was up
    timed_out: bool
    stderr: str  # of the child and of what it started
    seconds: float


def in_child(call: Callable[[], Any], seconds: float) -> Ended:
    """Call a function in a forked child.

    call    -- its result must be made of what JSON has, and bytes; it must not touch a GPU that this process
               has used already
    seconds -- after which the child, and what it started, is killed

    Cost: some 10 ms beyond the call. An interruption of this process kills the child first.
    """
    started = time.perf_counter()
    with tempfile.TemporaryFile() as stderr:
        reader, writer = os.pipe()
        with _forking:  # in the child it is let go, too
            child = os.fork()
        if child == 0:
            os.close(reader)
            _run(call, writer, stderr.fileno())
        os.close(writer)
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
    result, failure = _answer(answer, status, seconds)
    return Ended(result, failure, answer is None, said, time.perf_counter() - started)


def _run(call: Callable[[], Any], writer: int, stderr: int) -> None:
    # never returns: neither the parent's buffers nor its exit handlers are the child's to run
    try:
        os.setpgid(0, 0)
        faulthandler.disable()  # an abort is an answer here, and so is not worth
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a stack or a core
        os.dup2(stderr, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
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


def _answer(answer: bytes | None, status: int, seconds: float) -> tuple[Any, str]:
    if answer is None:
        return None, f"it did not end within {seconds:g} s"
    if not answer:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        return None, f"it was ended by {signal.Signals(number).name}" if number else "it ended without a word"
    content = msgspec.msgpack.decode(answer)
    return content.get("result"), content.get("failure", "")
