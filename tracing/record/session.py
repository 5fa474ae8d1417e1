"""Record everything that this process does between a start and an end: a program, or a block of code.

Nothing is compared with eager, and no generator is seeded. An error of the recorder's own ends the recording,
not the program: see `tracing.record.failsafe`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence

from tracing.errors import Problem
from tracing.model import Outcome
from tracing.program.device import Device
from tracing.record.autotuning.winners import Winners
from tracing.record.graphs.frame_compiles import frame_compiles_recorded
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.passes.recording import PassIRWhen, passes_recorded
from tracing.store import RunWriter
from tracing.virtual_gpu import is_active

_active: list[Session] = []
_starting = threading.Lock()
_Context = contextlib.AbstractContextManager[object]


class Session:
    """Records into a run from `start` to `end`, in the process that starts it; its forks record nothing."""

    def __init__(
        self,
        device: Device,
        recorder: LaunchRecorder,
        *,
        passes: PassIRWhen | None = "after",
        winners: Winners | None = None,
        around: Sequence[_Context] = (),
    ) -> None:
        """passes  -- as for `tracing.record.run.record`; their IR is derived on demand
        winners -- the configurations for autotuners; None: they choose
        around  -- entered around the recorder, in this order
        """
        self.writer: RunWriter = recorder.writer
        self.device, self._recorder = device, recorder
        self._passes, self._winners, self._around = passes, winners or Winners(self.writer), around
        self._exit = contextlib.ExitStack()
        self._thread = threading.current_thread()  # that starts it
        self._installed = False  # a virtual GPU
        self._pid = 0
        self._outcome: Outcome | None = None

    def start(self) -> None:
        """Record from now on.

        Raises Problem if a thread other than the main one records on a virtual GPU, which ends with that.
        """
        self._pid, self._thread = os.getpid(), threading.current_thread()
        with _starting, contextlib.ExitStack() as stack:
            self._require_lasting_device()
            nested = _active or (self.device.virtual and is_active())  # the device is active already
            stack.enter_context(contextlib.nullcontext() if nested else self.device.active())
            self._installed = self.device.virtual and not nested
            _active.append(self)
            stack.callback(_active.remove, self)
            stack.enter_context(self._winners)
            if self._passes is not None:
                stack.enter_context(passes_recorded(self.writer, self._passes))
            stack.enter_context(frame_compiles_recorded(self.writer))
            for context in self._around:
                stack.enter_context(context)
            stack.enter_context(self._recorder)
            self._exit = stack.pop_all()

    def _require_lasting_device(self) -> None:
        owner = next((one._thread for one in _active if one._installed), None)
        if owner is not None and owner not in (self._thread, threading.main_thread()):
            raise Problem(
                f"{owner.name} records on a virtual GPU, which ends with its recording: begin a recording "
                "in the main thread, around all threads",
                "further ones may begin inside of it",
            )

    @property
    def launches(self) -> int:
        """How many launches were seen so far."""
        return self._recorder.count

    @property
    def kept(self) -> str:
        """The recorded part of the launches; empty if it is all."""
        return self._recorder.kept

    def flush(self) -> None:
        """Write buffered records: this process may end without `end`."""
        if self._pid == os.getpid():
            self._recorder.flush()

    def end(self, outcome: Outcome) -> None:
        """Remove all hooks, and record the outcome; once, and not in a fork."""
        if self._pid != os.getpid() or self._outcome is not None:
            return
        self._outcome = outcome
        try:
            self._exit.close()
        except Exception as error:
            self._recorder.failsafe.end(error)
        self._recorder.failsafe.close()
        self.writer.last(outcome)
        with contextlib.suppress(OSError):
            self.writer.close()


def recorded_into() -> RunWriter | None:
    """The run into which this process is recorded; None: it is not recorded."""
    return next((one.writer for one in reversed(_active) if one.writer.writes), None)
