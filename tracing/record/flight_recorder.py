"""Decides which steps of a program are written, which of them stay on disk, and after which it stops.

A run that deletes earlier steps is written in segments (`tracing.store.segments`). A segment ends with a
step, when it has an eighth of the steps to keep, or a sixteenth of the disk; in the middle of a step only if
it has an eighth of the disk. The oldest segment is deleted as soon as the later ones have the steps to keep,
or when the run would occupy more disk than it may.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from tracing.model import ProgramStep, RecordingStop, Segment, StepSelection
from tracing.record.nonfinite_watch import NonFiniteWatch
from tracing.store import RunWriter
from tracing.store.segments import Segments

_SHARE = 8  # of the steps to keep, one part is a segment
_STEPS = 4  # of a segment, at least
_PARTS = 16  # of the disk, one part is a segment
_UNLIMITED = 64 << 20  # bytes without a step after which a warning is due
_REMEMBERED = 64  # ends of steps
_LISTED = 6  # steps with gaps


class Counts(NamedTuple):
    """What this process has done so far."""

    launches: int
    operators: int


class FlightRecorder:
    """The steps of one recording; called under the recording's lock."""

    def __init__(self, writer: RunWriter, steps: StepSelection) -> None:
        """Write the selected steps; the attributes are set before the first step ends."""
        self.paused = not steps.wants(0)  # the current step is not written
        self.watch = NonFiniteWatch(steps.until) if steps.until else None
        self.counts: Callable[[], Counts] = lambda: Counts(0, 0)
        self.flush: Callable[[], None] = lambda: None  # writes all buffered records
        self.flush_lines: Callable[[], None] = lambda: None  # writes those of launches and operators
        self.lock = threading.RLock()  # that of the recording
        self.resumed: Callable[[], None] = lambda: None  # called when steps are written once more
        self._writer, self._steps = writer, steps
        self._step = 0
        self._ends: deque[ProgramStep] = deque(maxlen=_REMEMBERED)
        self._stopped = False
        self._ended = 0  # steps, when the recording stopped
        self._length = max(_STEPS, -(-steps.last // _SHARE))  # steps of a segment
        self._complete: Counter[int] = Counter()  # steps by the segment in which they began
        self._began = 0  # segment of the current step
        self._firsts = {0: 0}  # the first step of each segment on disk
        self._warned = False
        self._segments = writer.segments
        if self._segments is not None:
            self._segments.make_room = self._make_room
            self._segments.quantum = steps.disk // (2 * _PARTS) or _UNLIMITED
            writer.begin_segment(Segment(0, 0, 0, 0, whole=True))

    @property
    def partial(self) -> bool:
        """True if only some steps are written."""
        return self._steps.partial

    def step_ended(self) -> None:
        """A step of the program has ended."""
        ended = ProgramStep(self._step, *self.counts())
        written = not self.paused
        self._step += 1
        follows = not self._stopped and self._steps.wants(self._step)
        self._ends.append(ended)
        if written or follows:  # otherwise no launch refers to it
            self._writer.append(ended)
        if written and self._steps.partial:
            self.flush()
            self._stop_if_asked(ended)
            if self._segments is not None:
                self._count(self._segments)
        was, self.paused = self.paused, self._stopped or not self._steps.wants(self._step)
        if was and not self.paused:
            self.resumed()

    def _stop_if_asked(self, ended: ProgramStep) -> None:
        if self.watch is None or self.watch.first is None:
            return
        launch, what = self.watch.first
        step = next((one.index for one in self._ends if launch < one.launches), ended.index)
        reason = f"{what}, in step {step}"
        self._writer.append(RecordingStop(ended.index, ended.launches, reason))
        self._stopped, self._ended, self.watch = True, ended.index + 1, None
        _say(f"the recording stopped after step {ended.index}, and the program continues: {reason}")

    @property
    def unmarked(self) -> bool:
        """True if steps were to be selected, and the program has not ended one so far."""
        return self._steps.counts_steps and not self._step

    @property
    def text(self) -> str:
        """The steps that are on disk, as "; steps 944:1000 are on disk"; empty if it is every one."""
        first = self._firsts.get(self._segments.oldest, 0) if self._segments is not None else 0
        ended = self._ended or self._step
        written = [step for step in range(first, ended) if self._steps.wants(step)]
        if not self._ended and len(written) == self._step:
            return ""
        return f"; {_steps_text(written)} on disk"

    # ---- segments

    def _count(self, segments: Segments) -> None:
        # a step has ended; delete what need not be kept any more
        self._complete[self._began] += 1
        big = 0 < self._steps.disk // _PARTS <= segments.in_segment
        if big or (self._steps.last and self._complete[segments.number] >= self._length):
            self._begin_segment(segments.number + 1, whole=True)
        self._began = segments.number
        while self._steps.last and segments.closed and self._kept_without_oldest() >= self._steps.last:
            self._writer.delete_oldest_segment()
            self._forget(segments)

    def _kept_without_oldest(self) -> int:
        assert self._segments is not None
        return sum(count for number, count in self._complete.items() if number > self._segments.oldest)

    def _forget(self, segments: Segments) -> None:
        for number in [one for one in self._firsts if one < segments.oldest]:
            del self._firsts[number]
            self._complete.pop(number, None)

    def _begin_segment(self, number: int, *, whole: bool) -> None:
        launches, operators = self.counts()
        self._writer.begin_segment(Segment(number, self._step, launches, operators, whole))
        self._firsts[number] = self._step
        if self._ends:  # the launches of the segment count from it
            self._writer.append(self._ends[-1])

    def _make_room(self, incoming: int) -> bool:
        # Some bytes were written since the size of the run was looked at. The thread that holds the lock may
        # wait for this one: then the size is looked at later.
        if not self.lock.acquire(blocking=False):
            return True
        try:
            return self._has_room(incoming)
        finally:
            self.lock.release()

    def _has_room(self, incoming: int) -> bool:
        segments, disk = self._segments, self._steps.disk
        assert segments is not None
        size = segments.size() + incoming
        if not disk:
            self._warn()
            return True
        if not incoming and segments.in_segment >= 2 * disk // _PARTS:
            self.flush_lines()
            self._begin_segment(segments.number + 1, whole=False)
        while size > disk - disk // _PARTS and segments.closed:
            if incoming and self._firsts[segments.oldest] == self._step:
                break  # the launches of this step are worth more than its tensors
            self._writer.delete_oldest_segment()
            size = segments.size() + incoming
        self._forget(segments)
        return size <= disk - disk // _PARTS

    def _warn(self) -> None:
        if self.unmarked and not self._warned:
            self._warned = True
            _say(
                f"{self.counts().launches} launches, and no step has ended: --last deletes nothing; "
                "call tracing.step() once in each iteration, or give --disk"
            )


def _steps_text(steps: Sequence[int]) -> str:
    # "steps 2:5 are"; with gaps "steps 0, 4 and 8 are", "steps 0, 4, ... and 96 are"
    if not steps:
        return "no step is"
    if len(steps) == 1:
        return f"step {steps[0]} is"
    if steps[-1] - steps[0] == len(steps) - 1:
        return f"steps {steps[0]}:{steps[-1] + 1} are"
    first = [str(step) for step in steps[: -1 if len(steps) <= _LISTED else 2]]
    first += ["..."] if len(steps) > _LISTED else []
    return f"steps {', '.join(first)} and {steps[-1]} are"


def _say(line: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # the program may have closed the stream
        sys.stderr.write(f"tracing: {line}\n")
