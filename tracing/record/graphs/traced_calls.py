"""Records the calls of what Inductor made of each graph that Dynamo traced, with their contents."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from tracing.model import TracedCall
from tracing.record.graphs.call_tensors import CallTensors
from tracing.record.graphs.shared_memory import overlapping_inputs, passed_inputs, shared_memory
from tracing.record.recording import Recording
from tracing.upstream.torch.dispatch_modes import functions_disabled
from tracing.upstream.torch.float32_precision import float32_precision

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_DEVICES = ("cpu", "cuda")


class TracedCalls:
    """Wraps the callables that Inductor returns to Dynamo; they record while this context is entered."""

    def __init__(
        self, recording: Recording, tensors: CallTensors, calls: Iterator[int], paused: Callable[[], bool]
    ) -> None:
        """calls -- the numbers of calls of graphs in this process"""
        self._recording, self._tensors, self._calls, self._paused = recording, tensors, calls, paused
        self._entered = False

    def __enter__(self) -> None:
        self._entered = True

    def __exit__(self, *exc: object) -> None:
        self._entered = False

    def wrapped(self, compiled: Callable[..., Any], graph: int) -> Callable[..., Any]:
        """A callable that records each of its calls.

        graph -- as `TracedGraph.id`
        """

        @functools.wraps(compiled)
        def called(*inputs: Any) -> Any:
            if not self._entered or self._paused() or not _plain(inputs):
                return compiled(*inputs)
            return self._call(compiled, graph, inputs)

        return called

    def _call(self, compiled: Callable[..., Any], graph: int, inputs: Sequence[Any]) -> Any:
        with self._recording.lock:
            index = next(self._calls)
        with functions_disabled():
            versions = [_version(one) for one in inputs]
        passed, overlapping = passed_inputs(inputs), overlapping_inputs(inputs)
        self._tensors.keep(index, "input", dict(enumerate(inputs)))
        settings = _autocast(), str(torch.get_default_dtype()).removeprefix("torch."), float32_precision()
        results = compiled(*inputs)
        self._tensors.keep(index, "output", dict(enumerate(results)))
        with functions_disabled():
            changed = {
                i: one
                for i, one in enumerate(inputs)
                if i in overlapping or _may_differ(one, versions[i])  # no version counts writes by an alias
            }
        self._tensors.keep(index, "afterwards", changed)
        with self._recording.lock:
            stop, thread = next(self._calls), self._recording.thread.number
            numbers = {i: one for i, one in enumerate(inputs) if isinstance(one, (int, float))}
            shared = shared_memory(results, passed)
            self._recording.writer.append(
                TracedCall(index, stop, graph, thread, numbers, shared, overlapping, *settings)
            )
        return results


def _plain(inputs: Sequence[Any]) -> bool:
    tensors = [one for one in inputs if isinstance(one, torch.Tensor)]
    with functions_disabled():
        return all(type(one) in _PLAIN and one.layout == torch.strided for one in tensors)


def _version(value: Any) -> int | None:
    # tensors of inference mode have none
    if not isinstance(value, torch.Tensor) or value.is_inference():
        return None
    return value._version


def _may_differ(value: Any, before: int | None) -> bool:
    return isinstance(value, torch.Tensor) and (before is None or _version(value) != before)


def _autocast() -> dict[str, str]:
    return {
        device: str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        for device in _DEVICES
        if torch.is_autocast_enabled(device)
    }
