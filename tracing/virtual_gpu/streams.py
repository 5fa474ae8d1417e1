"""Streams and events of a device that executes everything at once, in the order in which it is issued."""

from __future__ import annotations

import itertools
from typing import Any

import torch

MILLISECONDS = 1.0  # between any two events: nothing is measured

_handles = itertools.count(1)


class Stream:
    """Replaces torch.cuda.Stream; work issued on it has ended when the call returns."""

    current: Stream

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.cuda_stream = next(_handles)
        self.stream_id = self.cuda_stream
        self.device = torch.device("cuda", 0)
        self.device_index = 0
        self.device_type = 1
        self.priority = priority
        self._previous: list[Stream] = []

    def __enter__(self) -> Stream:
        self._previous.append(Stream.current)
        Stream.current = self
        return self

    def __exit__(self, *exception: object) -> None:
        Stream.current = self._previous.pop()

    def wait_stream(self, stream: object) -> None: ...

    def wait_event(self, event: object) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event


class Event:
    """Replaces torch.cuda.Event."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, **options: Any) -> None:
        self.device = torch.device("cuda", 0)
        self.cuda_event = 0

    def record(self, stream: object = None) -> None: ...

    def wait(self, stream: object = None) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, end_event: object) -> float:
        return MILLISECONDS


class StreamContext:
    """Replaces torch.cuda.stream(...) and torch.cuda.StreamContext; None means the current stream."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*exception)


DEFAULT = Stream()
DEFAULT.cuda_stream = DEFAULT.stream_id = 0
Stream.current = DEFAULT


def set_stream(stream: Stream | None) -> None:
    """Replaces torch.cuda.set_stream."""
    if stream is not None:
        Stream.current = stream
