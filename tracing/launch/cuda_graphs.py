"""Watch the CUDA graphs of the program: when one is captured, and when it is replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import torch

from tracing.upstream.patch import Method, patched


class CudaGraphListener(Protocol):
    """Receives the captures and replays of torch.cuda.CUDAGraph."""

    def capture_begins(self, graph: torch.cuda.CUDAGraph) -> None:
        """A capture on the current stream begins as soon as this returns."""

    def capture_ended(self, graph: torch.cuda.CUDAGraph) -> None:
        """The capture ended, or failed."""

    def replay_begins(self, graph: torch.cuda.CUDAGraph) -> Any:
        """The graph is replayed on the current stream; the value is passed to `replayed`."""

    def replayed(self, graph: torch.cuda.CUDAGraph, token: Any) -> None:
        """The replay was submitted to the device."""


@contextmanager
def watched(listener: CudaGraphListener) -> Iterator[None]:
    """While active, `listener` receives every capture and replay that Python code of this process makes."""

    def begins(original: Method) -> Method:
        def capture_begin(graph: torch.cuda.CUDAGraph, *args: Any, **kwargs: Any) -> None:
            listener.capture_begins(graph)
            try:
                original(graph, *args, **kwargs)
            except BaseException:
                listener.capture_ended(graph)
                raise

        return capture_begin

    def ends(original: Method) -> Method:
        def capture_end(graph: torch.cuda.CUDAGraph) -> None:
            try:
                original(graph)
            finally:
                listener.capture_ended(graph)

        return capture_end

    def replays(original: Method) -> Method:
        def replay(graph: torch.cuda.CUDAGraph) -> None:
            token = listener.replay_begins(graph)
            original(graph)
            listener.replayed(graph, token)

        return replay

    wrappers: dict[str, Callable[[Method], Method]] = {
        "capture_begin": begins,
        "capture_end": ends,
        "replay": replays,
    }
    with ExitStack() as stack:
        for name, wrapper in wrappers.items():
            stack.enter_context(patched(torch.cuda.CUDAGraph, name, wrapper))
        yield
