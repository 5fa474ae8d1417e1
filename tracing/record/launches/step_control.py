"""What happens to launches and operators at the end of a step, and in steps that are not written."""

from __future__ import annotations

from contextlib import AbstractContextManager

from tracing.launch import hooks
from tracing.launch.hidden_computation import HiddenComputation
from tracing.model import UNMARKED
from tracing.record.flight_recorder import Counts
from tracing.record.launches.cuda_graphs import RecordedCudaGraphs
from tracing.record.launches.host_launches import HostLaunches
from tracing.record.launches.launch_digests import LaunchDigests
from tracing.record.launches.launch_extras import LaunchExtras
from tracing.record.operator_calls import OperatorCalls
from tracing.record.recording import Recording
from tracing.record.steps import StepRecorder


class StepControl:
    """Ends the steps of a recording."""

    def __init__(
        self,
        recording: Recording,
        calls: OperatorCalls,
        host: HostLaunches,
        captured: RecordedCudaGraphs,
        digests: LaunchDigests | None,
        extras: LaunchExtras | None,
    ) -> None:
        """The parts of a `LaunchRecorder`; the recording's `flight` decides."""
        self._recording, self._flight, self._host = recording, recording.flight, host
        self._calls, self._captured, self._digests, self._extras = calls, captured, digests, extras
        flight, writers = recording.flight, recording.writers
        flight.counts, flight.flush, flight.resumed = self._counts, self._flush, self._resumed
        flight.flush_lines, flight.lock = self.flush_lines, recording.lock
        recording.lines.watch = flight.watch
        captured.passes_over = calls.passes_over = self.passes_over
        if (segments := recording.writer.segments) is not None:
            segments.deleted.append(lambda _: writers.keep(recording.storages.in_use()))

    def installed(self) -> AbstractContextManager[None]:
        """While active, the program's steps end steps of the recording."""
        return StepRecorder(self._ended).installed()

    def passes_over(self) -> bool:
        """True if launches and operators are neither written nor looked at now.

        In a step that is not written, the effects of launches on the host on memory are tracked, and a CUDA
        graph is captured completely, because a later step may replay it.
        """
        return self._flight.paused and not self._host.interprets and not self._captured.open

    def count(self) -> None:
        """A launch is passed over."""
        with self._recording.lock:
            self._recording.launches += 1

    def close(self) -> None:
        """The recording ends."""
        if self._flight.unmarked:
            self._recording.catalogue.not_covered(UNMARKED.what, UNMARKED.setting)

    def _counts(self) -> Counts:
        return Counts(self._recording.launches, self._recording.operators)

    def _ended(self) -> None:
        if self._recording.failsafe.over or not self._recording.writer.writes_here:
            return
        try:
            with self._recording.lock, hooks.hidden(), HiddenComputation():
                self._flight.step_ended()
        except Exception as error:
            self._recording.failsafe.end(error)

    def _flush(self) -> None:
        # what a killed process would lose otherwise
        self.flush_lines()
        wait = self._flight.watch is not None
        self._calls.hand_over(wait=wait)
        if self._digests is not None:
            self._digests.streams.hand_over(wait=wait)
        self._captured.hand_over(wait=wait)
        if self._extras is not None:
            self._extras.step_ended()

    def flush_lines(self) -> None:
        """Write the records of launches and operators that are known."""
        self._recording.lines.flush()
        self._calls.flush()

    def _resumed(self) -> None:
        if not self._host.interprets:
            self._recording.writers.keep(())
