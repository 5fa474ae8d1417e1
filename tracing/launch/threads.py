"""What a run says of the current thread."""

from __future__ import annotations

import itertools
import threading


class CurrentThread(threading.local):
    """What each thread finds here is its own.

    number -- threads are numbered in the order in which they first look
    seen   -- whether its operators are seen; None: not known yet
    """

    def __init__(self, numbers: itertools.count[int]) -> None:
        """numbers -- shared by all threads of a run"""
        self.number = next(numbers)
        self.seen: bool | None = None
