"""Streams of a GPU by the handles that launches name, and waiting on one."""

from __future__ import annotations

from collections.abc import Callable

import torch


def stream_of(handle: int, device: torch.device) -> torch.cuda.Stream:
    """The CUDA or HIP stream with this handle.

    0 is the default stream: `torch.cuda.ExternalStream` would take it for no handle, and make a new stream,
    whose work is not in order with that of the launch.
    """
    if handle == 0:
        return torch.cuda.default_stream(device)
    return torch.cuda.ExternalStream(handle, device=device)  # type: ignore[no-untyped-call, unused-ignore]


# (index of a device) -> the handle of its current stream, without the 2 µs of torch.cuda.current_stream().
# None: torch was built for CPUs.
current_handle: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # type: ignore[assignment]


def hold(clocks: int) -> None:
    """Let the current stream do nothing for a number of clocks of its GPU; returns at once."""
    torch.cuda._sleep(clocks)  # type: ignore[no-untyped-call, unused-ignore]
