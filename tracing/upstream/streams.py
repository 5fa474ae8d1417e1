"""The stream of a launch, by the handle that the launch names."""

from __future__ import annotations

import torch


def stream_of(handle: int, device: torch.device) -> torch.cuda.Stream:
    """The CUDA or HIP stream with this handle.

    0 is the default stream: `torch.cuda.ExternalStream` would take it for no handle, and make a new stream,
    whose work is not in order with that of the launch.
    """
    if handle == 0:
        return torch.cuda.default_stream(device)
    return torch.cuda.ExternalStream(handle, device=device)  # type: ignore[no-untyped-call, unused-ignore]
