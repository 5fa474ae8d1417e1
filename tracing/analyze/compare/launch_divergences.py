"""Decides what the differences of a pair of launches mean: which are divergences, and what caused them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from tracing.analyze.compare.cause_kinds import (
    Cause,
    Host,
    OperatorCause,
    OtherTarget,
    OtherTensor,
    Uninitialised,
    UnknownCause,
    WrittenElsewhere,
)
from tracing.analyze.compare.causes.cause_answer import Follows
from tracing.analyze.compare.causes.input_causes import Causes
from tracing.analyze.compare.comparison_notes import Notes
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    LaunchDiffers,
    LaunchPair,
    OrderDiffers,
    OutputDiffers,
    ReadOutside,
)
from tracing.analyze.compare.launch_difference import LaunchDifference, LaunchDifferences, touched_equally
from tracing.analyze.compare.pairing import Pairing, Status
from tracing.analyze.compare.signature_pair import SettingChange, Slot
from tracing.analyze.compare.winners import RecordedWinners
from tracing.analyze.runs.digest_ranges import Blame, blame

_Whose: TypeAlias = Literal["launch", "untouched", "open", "same"]


class LaunchDivergences:
    """The divergences of launches, for one process of each run."""

    def __init__(
        self, notes: Notes, pairing: Pairing, causes: Causes, differences: LaunchDifferences
    ) -> None:
        self._notes, self._pairing, self._causes, self._differences = notes, pairing, causes, differences
        self._winners = RecordedWinners(notes.a, notes.b)
        self._read: set[tuple[Cause, str, str]] = set()  # the reported inputs that differ, with their bits
        self._origins: set[OperatorCause] = set()  # the reported lines that call an operator in one run only

    def of(
        self, seen: LaunchDifference, launches: LaunchPair, unshown: OrderDiffers | None
    ) -> Iterator[Divergence]:
        """The reported differences of a pair; the others are counted in the notes.

        launches -- of the pair
        unshown  -- equal launches in another order: they explain a difference that nothing else does
        """
        a, b = seen.a, seen.b
        causes = {slot: self._causes.of(a, b, slot.position) for slot in seen.inputs}
        loose = {slot: one for slot, one in causes.items() if isinstance(one, Uninitialised)}
        whose = {slot: self._blamed(slot, seen, launches) for slot in seen.outputs}
        outputs = [slot for slot, one in whose.items() if one != "same"]
        code = self._differences.code(seen)
        compiled_for = self._differences.compiled_for(seen, code)
        if compiled_for:
            code = None
        changes = (*seen.pair.changes, *compiled_for)
        tuned = not code and self._winners.explain(a.kernel.name, changes)
        changed = bool(changes or code)
        divergences = [
            self._input(launches, slot, cause)
            for slot, cause in causes.items()
            if slot not in loose and (tuned or not changed)  # another winner is no cause of other inputs
        ]
        if changed:
            yield from (one for one in divergences if one is not None)
            written, read = (_names(seen, slots) for slots in (outputs, seen.inputs))
            yield LaunchDiffers(launches, changes, code, tuned, written, read)
            self._mark(seen, outputs, "differs")
            return
        if divergences and not any(divergences) and not self._notes.reported and unshown is not None:
            yield unshown  # its launches are equal one by one, and wrote the same memory in another order
        yield from (one for one in divergences if one is not None)
        if len(loose) < len(seen.inputs):
            self._mark(seen, outputs, "differs")
        elif loose:
            if outputs:
                self._notes.depends(InputDiffers(launches, slot.position, one) for slot, one in loose.items())
            self._mark(seen, outputs, "loose")
        else:
            yield from self._outputs(launches, seen, whose)

    def _input(self, launches: LaunchPair, slot: Slot, cause: Cause | Follows) -> Divergence | None:
        # None: the difference follows, or may follow, from a reported one
        if isinstance(cause, Follows):
            self._notes.follows(
                InputDiffers(
                    launches, slot.position, UnknownCause("this difference follows from another one")
                )
            )
            return None
        if isinstance(cause, WrittenElsewhere) and cause.writer.a is not None:
            self._pairing.accuse(cause.writer.a, cause.writer.argument)
        if isinstance(cause, OperatorCause) and isinstance(cause.how, OtherTarget):
            self._pairing.accuse_call(cause.names[0], cause.arguments[0], cause.how.number - 1)
        divergence = InputDiffers(launches, slot.position, cause)
        read = (cause, *_bits(launches, slot))
        unproven = (self._notes.reported or self._notes.started) and not _proven(cause)
        origin = cause.origin if isinstance(cause, OperatorCause) else None
        # a later launch may read what a reported one read, or what was computed from it
        if unproven or read in self._read or origin in self._origins:
            self._notes.follows(divergence)
            return None
        self._read.add(read)
        if origin is not None:
            self._origins.add(origin)
        return divergence

    def _overlap(self, seen: LaunchDifference) -> SettingChange | None:
        # arguments that overlap differently than in the other run make the launch different
        a, b = seen.a.overlaps(), seen.b.overlaps()
        return SettingChange("overlap of arguments", _overlap_text(a), _overlap_text(b)) if a != b else None

    def _outputs(
        self, launches: LaunchPair, seen: LaunchDifference, whose: dict[Slot, _Whose]
    ) -> Iterator[Divergence]:
        accused = [slot for slot, one in whose.items() if one == "launch"]
        overruns = [one for step in (seen.b, seen.a) for one in step.out_of_bounds if one.access == "load"]
        if accused and overruns:
            yield OutputDiffers(launches, accused[0].position, ReadOutside(overruns[0].argument))
            self._mark(seen, accused, "differs")
            return
        if accused and seen.pair.addresses:
            yield from self._through_addresses(launches, seen, accused)
            return
        if accused and (change := self._overlap(seen)):
            yield LaunchDiffers(launches, (change,), None, False, _names(seen, accused))
            self._mark(seen, accused, "differs")
            return
        lost: Literal["", "code"] = "code" if accused and self._differences.is_code_lost(seen) else ""
        for slot, one in whose.items():
            if one == "launch":
                yield OutputDiffers(launches, slot.position, lost)
                self._mark(seen, [slot], "differs")
            elif one != "same":
                doubt: Literal["unwritten", "untouched"] = "unwritten" if one == "open" else "untouched"
                self._notes.doubtful(OutputDiffers(launches, slot.position, doubt))
                self._mark(seen, [slot], "loose")

    def _through_addresses(
        self, launches: LaunchPair, seen: LaunchDifference, accused: Sequence[Slot]
    ) -> Iterator[Divergence]:
        # memory that a kernel read through addresses is no argument, and may differ
        self._mark(seen, accused, "differs")
        divergence = OutputDiffers(launches, accused[0].position, "addresses")
        if self._notes.reported or self._notes.started:
            self._notes.follows(divergence)
        else:
            yield divergence

    def _blamed(self, slot: Slot, seen: LaunchDifference, launches: LaunchPair) -> _Whose:
        equally = touched_equally(slot, seen.a, seen.b)
        if equally is not None:
            return "same" if equally else "launch"
        if slot.position in {one.position for one in seen.inputs}:
            return "launch"
        return _blame(slot, launches)

    def _mark(self, seen: LaunchDifference, outputs: Sequence[Slot], status: Status) -> None:
        for slot in outputs:
            self._pairing.mark(seen.a.index, slot.position, status)
        compared = {slot.position for slot in seen.pair.slots if slot.side == "after"}
        changed = {change.name for change in seen.pair.changes}
        for position, arg in enumerate(seen.a.signature.args):
            if changed and arg.writes and (position not in compared or arg.name in changed):
                self._pairing.mark(seen.a.index, position, status)


def _blame(slot: Slot, launches: LaunchPair) -> Blame:
    assert launches.a is not None and launches.b is not None
    one, other = (launch.args[slot.position] for launch in (launches.a, launches.b))
    if not (one.before and other.before and one.after and other.after):
        return "launch"  # as far as digests were taken
    return blame((one.before, other.before), (one.after, other.after))


def _bits(launches: LaunchPair, slot: Slot) -> tuple[str, str]:
    # of an argument before the launch; empty: it has no digest
    assert launches.a is not None and launches.b is not None
    a, b = (launch.args[slot.position].before for launch in (launches.a, launches.b))
    return a.bits if a else "", b.bits if b else ""


def _names(seen: LaunchDifference, slots: Sequence[Slot]) -> tuple[str, ...]:
    return tuple(seen.a.signature.args[slot.position].name for slot in slots)


def _overlap_text(overlaps: Sequence[tuple[str, str, int]]) -> str:
    return ", ".join(f"{one} and {other} {distance:+d} bytes" for one, other, distance in overlaps) or "none"


def _proven(cause: Cause) -> bool:
    if isinstance(cause, (OperatorCause, OtherTensor, Host)):
        return cause.proven
    return not isinstance(cause, UnknownCause)
