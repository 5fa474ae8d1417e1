"""Give a program back the handler of SIGUSR1 that LLVM takes from it.

The first compilation registers LLVM's handlers of signals. Those that end a process call the earlier handler;
the one of SIGUSR1, which prints what LLVM is doing, does not. Source: RegisterHandlers in LLVM's
lib/Support/Unix/Signals.inc
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIZE = 512  # bytes: more than a `struct sigaction` of any libc has

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def handler_kept() -> Iterator[None]:
    """Restore the handler of SIGUSR1 afterwards; also in threads, where Python's signal.signal is refused."""
    before = ctypes.create_string_buffer(_SIZE)
    known = _libc.sigaction(signal.SIGUSR1, None, before) == 0
    try:
        yield
    finally:
        if known:
            _libc.sigaction(signal.SIGUSR1, before, None)
