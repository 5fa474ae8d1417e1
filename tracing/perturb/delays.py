"""Delay launches and operators, so that work without synchronisation runs in another order.

Two delays are applied. Some launches and operators, chosen by a seed, wait a little, on the host and on their
stream. And one stream, another in each run, starts late whenever the program switches to it from another
stream: a kernel that should have waited for that stream and did not reads old contents.

Both are kernels that spin on the stream, so nothing waits on the host for longer than a few milliseconds,
and a program with all necessary waits computes the same results.

Limits. A missing `wait_stream` is detected only if the other stream's work is issued within HELD_MS, which
compilation or tuning in between exceeds. Work that the program issues neither through Triton nor through
torch's dispatcher is not delayed itself; the work that it waits for is.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from tracing.launch import hooks
from tracing.launch.launch_site import Grid, LaunchSite
from tracing.upstream.torch.dispatch_modes import OperatorMode, compiles_without_modes
from tracing.upstream.torch.streams import hold, stream_of

HELD_MS = 20.0  # delay of a stream, each time the program switches to it
SHORT_MS = 2.0  # maximum delay of one launch
RATE = 0.2  # fraction of the launches and operators that are delayed
MOST = 100  # maximum delay of each kind in a run, so that a program of many launches does not take minutes
CLOCK_KHZ = 2_000_000  # clock rate of a fast GPU; a slower one waits for longer

_Stream: TypeAlias = tuple[int, int]  # device and handle


class Delays:
    """While entered, launches and operators of this process are held back; a listener of `hooks`."""

    def __init__(self, seed: int | None, held: int | None = None) -> None:
        """Choose delays by `seed`, None: no delays; `held` is the stream that starts late.

        held -- its number, in the order in which the program first uses its streams; None: no stream
        """
        self.streams: list[_Stream] = []  # that were used so far
        self.counts: Counter[str] = Counter()  # of "launch" and "stream"
        self._chosen = random.Random(seed) if seed is not None else None
        self._held = held
        self._last: _Stream | None = None
        self._lock = threading.Lock()  # CUDA's backward launches from autograd's own threads
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Delays:
        with contextlib.ExitStack() as stack:
            stack.enter_context(hooks.installed(self))
            stack.enter_context(_Operators(self))
            stack.enter_context(compiles_without_modes())
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def before(self, site: LaunchSite, values: Sequence[Any], stream: int, grid: Grid | None) -> None:
        """A launch is about to be made on this stream."""
        self._issued((torch.cuda.current_device(), stream) if _on_gpu() else None)

    def after(self, token: None) -> None:
        """Called after the launch was made."""

    def operator(self) -> None:
        """An operator is about to be issued on the current stream."""
        if _on_gpu() and hooks.shown():
            device = torch.cuda.current_device()
            self._issued((device, torch.cuda.current_stream(device).cuda_stream))

    def _issued(self, stream: _Stream | None) -> None:
        if stream is not None and torch.cuda.is_current_stream_capturing():
            return  # otherwise the graph would contain the delay
        with self._lock:
            turned = stream != self._last
            self._last = stream
            if stream is not None and stream not in self.streams:
                self.streams.append(stream)
            if stream is not None and turned and self._is_held(stream):
                self._delay("stream", stream, HELD_MS)
            elif self._chosen is not None and self._chosen.random() < RATE:
                self._delay("launch", stream, SHORT_MS * self._chosen.random())

    def _is_held(self, stream: _Stream) -> bool:
        return self._held is not None and self.streams.index(stream) == self._held

    def _delay(self, kind: str, stream: _Stream | None, ms: float) -> None:
        if self.counts[kind] >= MOST:
            return
        self.counts[kind] += 1
        if kind == "launch":
            time.sleep(ms / 1000)
        if stream is not None:
            device, handle = stream
            with torch.cuda.stream(stream_of(handle, torch.device("cuda", device))):
                hold(int(ms * CLOCK_KHZ))


def _on_gpu() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call, unused-ignore]


class _Operators(OperatorMode):
    def __init__(self, delays: Delays) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._delays = delays

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self._delays.operator()
        return func(*args, **(kwargs or {}))
