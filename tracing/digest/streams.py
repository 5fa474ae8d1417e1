"""The digests on every stream of a program."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tracing.digest.columns import DigestedLaunches
from tracing.digest.gpu import StreamDigests


class DigestStreams:
    """The StreamDigests of each stream on which something is digested."""

    def __init__(self, arrived: Callable[[DigestedLaunches], None]) -> None:
        """arrived -- receives the digests, in any order"""
        self._arrived = arrived
        self._streams: dict[tuple[torch.device, int], StreamDigests] = {}

    def on(self, device: torch.device, handle: int) -> StreamDigests:
        """The digests on one stream; handle -- of a CUDA or HIP stream of `device`"""
        stream = self._streams.get((device, handle))
        if stream is None:
            stream = self._streams[device, handle] = StreamDigests(device, handle, self._arrived)
        return stream

    def hand_over(self, *, wait: bool) -> None:
        """Let the digests so far arrive soon; wait: first wait for those of earlier calls."""
        for stream in self._streams.values():
            stream.hand_over(wait=wait)

    def drain(self) -> None:
        """Wait for all digests."""
        for stream in self._streams.values():
            stream.drain()
