"""The differences between two partner launches: settings, code, inputs, outputs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracing.analyze.compare.comparison_notes import Notes
from tracing.analyze.compare.kernel_code import CodeDifference, KernelCodes
from tracing.analyze.compare.signature_pair import SettingChange, SignaturePair, Slot, signature_pair
from tracing.analyze.compare.timeline.timeline_step import TimelineStep


@dataclass(slots=True)
class LaunchDifference:
    """Two launches, and the arguments that differ."""

    a: TimelineStep
    b: TimelineStep
    pair: SignaturePair
    inputs: list[Slot] = field(default_factory=list)
    outputs: list[Slot] = field(default_factory=list)
    ignored: list[Slot] = field(default_factory=list)  # what the launches access of it is equal


class LaunchDifferences:
    """The differences of launches of two processes; what signatures have in common is computed once."""

    def __init__(self, notes: Notes, codes: KernelCodes) -> None:
        self._notes, self._codes = notes, codes
        self._pairs: dict[object, SignaturePair] = {}

    def _pair(self, a: TimelineStep, b: TimelineStep) -> SignaturePair:
        key = (a.row.line.signature, *a.row.pattern, b.row.line.signature, *b.row.pattern)
        pair = self._pairs.get(key)
        if pair is None:
            pair = signature_pair(a.row, b.row, (a.kernel, a.signature), (b.kernel, b.signature))
            self._pairs[key] = pair
            self._notes.addresses.update((a.kernel.name, name) for name in pair.addresses)
        return pair

    def of(self, a: TimelineStep, b: TimelineStep) -> LaunchDifference:
        """The differences that digests and exact accesses show."""
        seen = LaunchDifference(a, b, self._pair(a, b))
        for slot in seen.pair.differing(a.row, b.row):
            if touched_equally(slot, a, b) is True:
                seen.ignored.append(slot)
            if slot.side == "before":
                if slot not in seen.ignored:
                    seen.inputs.append(slot)
            elif slot.differs_by_writing(a.row, b.row):
                seen.outputs.append(slot)
        return seen

    def code(self, seen: LaunchDifference) -> CodeDifference | None:
        """The difference of the kernels' code; None: equal, or of kernels of different names."""
        a, b = seen.a.kernel, seen.b.kernel
        alike = not seen.pair.changes
        return self._codes.difference(a, b, alike=alike) if a.name == b.name else None

    def compiled_for(self, seen: LaunchDifference, code: CodeDifference | None) -> tuple[SettingChange, ...]:
        """What the program lets the compiler do otherwise, if that explains a difference of compiled code."""
        if code is None or code.stage == "source" or seen.pair.changes:
            return ()
        return self._codes.compiled_for(seen.a.kernel, seen.b.kernel)

    def is_code_lost(self, seen: LaunchDifference) -> bool:
        """True if the kernels' code cannot be read, because a run is damaged: it may differ."""
        return self._codes.is_lost(seen.a.kernel, seen.b.kernel)


def touched_equally(slot: Slot, a: TimelineStep, b: TimelineStep) -> bool | None:
    """True if both launches read, or wrote, equal bytes; None: only whole arguments were digested."""
    if a.access is None or b.access is None:
        return None
    field = "read" if slot.side == "before" else "written"
    ours, theirs = (getattr(step.access, field).get(slot.position, "") for step in (a, b))
    return bool(ours == theirs)
