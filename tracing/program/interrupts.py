"""Make an interrupt impossible to lose: Python ignores what callbacks of weak references raise.

Ctrl-C may raise its KeyboardInterrupt there, as torch has such callbacks, or in a finalizer: Python would
print "Exception ignored in", and the program would go on.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_CALLBACK_ENDS = 0.05  # seconds from an ignored interrupt to the next one


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """While active, an interrupt that Python ignores is sent once more, until the program receives it.

    An interrupt that the program's own handler of SIGINT raises is left to the program.
    """
    before = sys.unraisablehook
    sys.unraisablehook = own = _sent_once_more(before)
    try:
        yield
    finally:
        if sys.unraisablehook is own:  # otherwise it is the program's, whose exit handlers may need it
            sys.unraisablehook = before


def _sent_once_more(original: Any) -> Any:
    def report(error: Any) -> None:
        by_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if isinstance(error.exc_value, KeyboardInterrupt) and by_python:
            # not threading.Thread: the callback may run while this thread holds a lock of that module
            _thread.start_new_thread(_send, ())
        else:
            original(error)

    return report


def _send() -> None:
    # a signal to the thread that receives it ends its system call, too; _thread.interrupt_main does not
    time.sleep(_CALLBACK_ENDS)
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)
