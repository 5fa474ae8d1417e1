"""Records the calls of the compiled form of each graph that Dynamo traced, with the contents of tensors."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from tracing.model import TracedCall
from tracing.record.graphs.call_tensors import CallTensors
from tracing.record.graphs.shared_memory import (
    first_bytes,
    overlapping_inputs,
    passed_inputs,
    shared_memory,
)
from tracing.record.graphs.traced_backwards import TracedBackwards, gradient_edges
from tracing.record.recording import Recording
from tracing.upstream.torch.compiled_backward import backwards_followed
from tracing.upstream.torch.dispatch_modes import functions_disabled
from tracing.upstream.torch.float32_precision import float32_precision, tf32_products

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_DEVICES = ("cpu", "cuda")


class _Written(threading.local):
    def __init__(self) -> None:
        self.addresses: set[int] = set()  # of inputs that compiled graphs overwrite during the present call


class TracedCalls:
    """Wraps the callables that Inductor returns to Dynamo; they record while this is installed."""

    def __init__(self, recording: Recording, tensors: CallTensors, calls: Iterator[int]) -> None:
        """calls -- the numbers of calls of graphs in this process"""
        self._recording, self._tensors, self._calls = recording, tensors, calls
        self._entered = False
        self._written = _Written()
        self._backwards = TracedBackwards(recording, tensors, calls, self._records)

    def _records(self) -> bool:
        return self._entered and not self._recording.flight.paused

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Record calls while active."""
        self._entered = True
        try:
            with backwards_followed(self._backwards):
                yield
        finally:
            self._entered = False

    def wrapped(
        self, compiled: Callable[..., Any], graph: int, attributes: Sequence[weakref.ref[torch.Tensor]] = ()
    ) -> Callable[..., Any]:
        """A callable that records each of its calls.

        graph      -- as `TracedGraph.id`
        attributes -- tensors that the graph reads without getting them; they follow its inputs
        """

        @functools.wraps(compiled)
        def called(*inputs: Any) -> Any:
            read = (*inputs, *(one() for one in attributes))
            if not self._records() or not _plain(read):
                return compiled(*inputs)
            return self._call(lambda: compiled(*inputs), graph, read)

        return called

    def overwrites(self, inputs: Iterable[Any]) -> None:
        """Note inputs that a compiled graph overwrites: its code does not count their versions."""
        self._written.addresses |= first_bytes(inputs)

    def _call(self, compiled: Callable[[], Any], graph: int, inputs: Sequence[Any]) -> Any:
        with self._recording.lock:
            index = next(self._calls)
        with functions_disabled():
            versions = [_version(one) for one in inputs]
        passed, overlapping = passed_inputs(inputs), overlapping_inputs(inputs)
        self._tensors.keep(index, "input", dict(enumerate(inputs)))
        dtype = str(torch.get_default_dtype()).removeprefix("torch.")
        settings = _autocast(), dtype, float32_precision(), tf32_products()
        self._written.addresses.clear()
        with functions_disabled():
            edges = gradient_edges(inputs)
        results = compiled()
        self._tensors.keep(index, "output", dict(enumerate(results)))
        left = self._may_differ(inputs, versions)
        self._tensors.keep(index, "afterwards", {i: inputs[i] for i in sorted({*left, *overlapping})})
        with self._recording.lock:
            stop, thread = next(self._calls), self._recording.thread.number
            numbers = {i: one for i, one in enumerate(inputs) if isinstance(one, (int, float))}
            shared = shared_memory(results, passed)
            self._recording.writer.append(
                TracedCall(index, stop, graph, thread, numbers, shared, overlapping, *settings)
            )
        with functions_disabled():
            self._backwards.follow(index, edges, results)
        return results

    def _may_differ(self, inputs: Sequence[Any], versions: Sequence[int | None]) -> list[int]:
        # the inputs that the call may have overwritten, by position
        written = self._written.addresses
        with functions_disabled():
            return [
                i
                for i, one in enumerate(inputs)
                if isinstance(one, torch.Tensor)
                and (versions[i] is None or _version(one) != versions[i] or first_bytes([one]) & written)
            ]


def _plain(inputs: Sequence[Any]) -> bool:
    tensors = [one for one in inputs if isinstance(one, torch.Tensor)]
    with functions_disabled():
        return all(type(one) in _PLAIN and one.layout == torch.strided for one in tensors)


def _version(value: Any) -> int | None:
    # tensors of inference mode have none
    if not isinstance(value, torch.Tensor) or value.is_inference():
        return None
    return value._version


def _autocast() -> dict[str, str]:
    return {
        device: str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        for device in _DEVICES
        if torch.is_autocast_enabled(device)
    }
