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

    def __init__(self, numbers: itertools.count[int]) -> None:
        """numbers -- shared by all threads of a run"""
        self.number = next(numbers)
        self.seen: bool | None = None
        self.slots: object = None
