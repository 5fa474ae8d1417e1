"""Streams of a GPU by the handles that launches name, and waiting on one."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tracing.upstream.contract import require


def stream_of(handle: int, device: torch.device) -> torch.cuda.Stream:
    """The CUDA or HIP stream with this handle.

    0 is the default stream: `torch.cuda.ExternalStream` would treat it as a missing handle, and create a
    new stream, which is not ordered with the launch.
    """
    if handle == 0:
        return torch.cuda.default_stream(device)
    return torch.cuda.ExternalStream(handle, device=device)  # type: ignore[no-untyped-call, unused-ignore]


# (index of a device) -> the handle of its current stream, without the 2 µs of torch.cuda.current_stream().
# None: torch was built for CPUs.
current_handle: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # type: ignore[assignment]

# () -> the index of the current device, without the checks of torch.cuda.current_device(). None: likewise.
current_device: Callable[[], int] = getattr(torch._C, "_cuda_getDevice", None)  # type: ignore[assignment]


def hold(clocks: int) -> None:
    """Let the current stream spin for a number of GPU clocks; returns immediately."""
    torch.cuda._sleep(clocks)  # type: ignore[no-untyped-call, unused-ignore]


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require(callable(stream_of), "streams by handle")
    if torch.version.cuda:
        require(current_handle is not None and hasattr(torch.cuda, "_sleep"), "the handle of a stream")
        require(current_device is not None, "the current device")
    if torch.cuda.is_available():
        device = torch.device("cuda", torch.cuda.current_device())
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call, unused-ignore]
        with torch.cuda.stream(stream):
            require(current_handle(device.index) == stream.cuda_stream, "the handle of the current stream")
        external = stream_of(stream.cuda_stream, device)
        require(current_device() == device.index, "the index of the current device")
        require(external.cuda_stream == stream.cuda_stream, "the stream of a handle")
