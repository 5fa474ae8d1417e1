"""Compute on the stream of a launch without being recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from tracing.launch import hooks
from tracing.upstream.torch.dispatch_modes import dispatch_disabled, functions_disabled
from tracing.upstream.torch.streams import stream_of


@contextmanager
def unrecorded(stream: int, tensors: Iterable[torch.Tensor]) -> Iterator[bool]:
    """While active, computations of this thread bypass modes and hooks, and have no gradient.

    stream  -- the handle on which the launch is made
    tensors -- inputs of the computation; if none of them is on a GPU, `stream` is ignored

    Yields True if that stream is being captured into a graph. If not, the current stream waits for it at the
    end, because the results are used there.
    """
    unseen = dispatch_disabled(), functions_disabled(), torch.no_grad()
    with hooks.hidden(), unseen[0], unseen[1], unseen[2]:
        device = next((tensor.device for tensor in tensors if tensor.is_cuda), None)
        if device is None:
            yield False
            return
        current = torch.cuda.current_stream(device)
        launched = stream_of(stream, device)
        with torch.cuda.stream(launched):
            capturing = torch.cuda.is_current_stream_capturing()
            yield capturing
        if not capturing:
            current.wait_stream(launched)
