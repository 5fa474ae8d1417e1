"""Processes that the server starts: each ends with the server, and with everything that it started itself."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from tracing.compiler.child import die_with
from tracing.environment import with_variables

_SECONDS = 5.0  # after SIGINT, until SIGKILL


def start_process(words: Sequence[str], **variables: str) -> subprocess.Popen[str]:
    """Start a program in a process group of its own; its output is read through pipes.

    variables -- of its environment, in addition to those of this process

    The process is killed when the calling thread ends, however it ends.
    """
    server = os.getpid()
    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="backslashreplace",
        start_new_session=True,
        preexec_fn=lambda: die_with(server),
        env=with_variables(variables),
    )


def stop_process(process: subprocess.Popen[str]) -> None:
    """Interrupt a process group as Ctrl-C does, and kill what is left of it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
