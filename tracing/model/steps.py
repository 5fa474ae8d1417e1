"""The steps of a program: which are recorded, which are kept, and where the recording of steps stopped."""

from __future__ import annotations

from typing import Literal

from tracing.model.record import Record


class ProgramStep(Record, frozen=True, file="steps", segmented=True):
    """The end of one step of a program: an iteration of its training loop."""

    index: int  # in this process, from 0
    launches: int  # that this process had made when the step ended
    operators: int = -1  # outside of Triton, that it had called; -1: an earlier version recorded the step


class StepSelection(Record, frozen=True):
    """The steps that a recording writes, and those that it keeps; the defaults leave out nothing."""

    last: int = 0  # recorded steps that stay on disk, at least; 0: all
    every: int = 1  # record each n-th step, from `start`
    start: int = 0
    stop: int | None = None  # None: no end
    until: Literal["", "nan", "inf", "any"] = ""  # stop after the first step with such a value
    disk: int = 0  # bytes that the run may occupy; 0: no limit

    @property
    def drops(self) -> bool:
        """True if earlier steps are deleted while later ones are recorded."""
        return bool(self.last or self.disk)

    @property
    def skips(self) -> bool:
        """True if some steps are not written at all."""
        return self.every != 1 or self.start != 0 or self.stop is not None

    @property
    def partial(self) -> bool:
        """True if some steps may be missing in the run."""
        return self.drops or self.skips or bool(self.until)

    def watched(self, kind: Literal["nan", "inf", "any"]) -> bool:
        """True if the recording ended with the first step that had such a value."""
        return not self.skips and self.until in ("any", kind)

    @property
    def counts_steps(self) -> bool:
        """True if it means something only for a program that marks its steps, unlike a bound of bytes."""
        return self.skips or bool(self.last or self.until)

    def wants(self, step: int) -> bool:
        """True if a step is written."""
        inside = self.start <= step and (self.stop is None or step < self.stop)
        return inside and (step - self.start) % self.every == 0


class Segment(Record, frozen=True, file="segments", segmented=True):
    """The first record of a segment: the files that a process writes for some steps, and deletes together."""

    index: int  # of the segment, from 0
    step: int  # steps of the program that had ended when the segment began
    launches: int  # that this process had made
    operators: int  # outside of Triton, that it had called
    whole: bool  # it begins with the step: no launch of it is in an earlier segment


class RecordingStop(Record, frozen=True, file="stops"):
    """The recording stopped as requested, before the program ended."""

    step: int  # the last one that was recorded
    launches: int  # that this process had made then
    reason: str  # "a NaN after launch #17 triton_poi_fused_log_0, in step 3"
