"""The number of the current thread in a run, and its state."""

from __future__ import annotations

import itertools
import threading


class CurrentThread(threading.local):
    """Attributes with a value for each thread.

    number -- threads are numbered in the order of their first access
    slots  -- facts of the last launch that Python has recorded
    seen   -- True if the operators of the thread are seen; None: not known yet
    """

    def __init__(self, numbers: itertools.count[int], foreign: dict[int, int]) -> None:
        """numbers -- shared by all threads of a run
        foreign -- likewise: the number of each thread that Python did not start, by its id
        """
        own = threading.get_ident()
        if own in [thread.ident for thread in threading.enumerate()]:
            self.number = next(numbers)
        else:  # one of torch.jit.fork enters Python anew for each operator
            if own not in foreign:
                foreign[own] = next(numbers)
            self.number = foreign[own]
        self.seen: bool | None = None
        self.slots: object = None
