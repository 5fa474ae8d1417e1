"""Enters the modes that record operators outside of Triton, and notes the threads that they miss."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

from tracing.launch.threads import CurrentThread
from tracing.operators import allocators, compiled
from tracing.operators.dispatch import Operators
from tracing.record.landmarks import Landmarks
from tracing.record.operator_calls import OperatorCalls
from tracing.record.recording import Recording
from tracing.upstream.torch.dispatch_modes import compiles_without_modes


class RecordedOperators:
    """The operators of one recording."""

    def __init__(self, recording: Recording, calls: OperatorCalls, landmarks: Landmarks) -> None:
        self._recording, self._calls, self._landmarks = recording, calls, landmarks
        self._mode: Operators | None = None

    @contextmanager
    def installed(self) -> Iterator[None]:
        """While active, operators, collectives and updates of parameters are recorded."""
        with ExitStack() as stack:
            stack.enter_context(self._landmarks.installed())
            self._mode = Operators(self._calls, self._landmarks, failed=self._recording.failsafe.end)
            stack.enter_context(self._mode)
            stack.enter_context(self._mode.carried())
            stack.enter_context(compiles_without_modes())
            form = compiled.observed(self._mode, self._calls) if self._calls.compiles else nullcontext()
            stack.enter_context(allocators.watched(self._calls, stack.enter_context(form)))
            yield

    def look_at(self, thread: CurrentThread) -> None:
        """Note whether operators of a thread are recorded."""
        thread.seen = self._mode is None or self._mode.active()
        if not thread.seen:
            what = "operators outside of Triton on a thread that was running already when recording began"
            setting = "a thread that the case starts, by Python's threading"
            self._recording.catalogue.not_covered(what, setting)

    def look_at_launch(self) -> None:
        """Note a launch inside of an operator that is written in Python."""
        if self._mode is not None and self._recording.thread.seen and not self._mode.active():
            what = "operators inside of a custom operator that launches kernels: they count as that one"
            self._recording.catalogue.not_covered(what, "a plain function instead of it")
