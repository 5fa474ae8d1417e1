"""Records the exact accesses of each launch that the interpreter executes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from tracing.digest.host import bits_of, nonfinite
from tracing.interpreter.gates import AccessKind, Mask
from tracing.launch.memory.accesses import Accesses
from tracing.launch.memory.happens_before import PROGRAMS
from tracing.launch.memory.memory_block import AccessedArgument, Bytes, MemoryBlock, logical
from tracing.launch.memory.occupied_mask import occupied
from tracing.launch.memory.out_of_bounds import OutsideAccesses
from tracing.launch.memory.program_order import Conflict
from tracing.launch.storages import Reach
from tracing.model import Access, Digest, MemoryEvidence, may_read, may_write
from tracing.record.memory.fresh_memory import FreshMemory, PartialWrite, UnwrittenBytes
from tracing.record.memory.unwritten_values import UnwrittenValues
from tracing.record.recording import Recording
from tracing.views import row_major

_RUNS = 16  # maximum of listed byte ranges


@dataclass(slots=True)
class WatchedLaunch:
    """A launch whose accesses are recorded."""

    launch: int
    accesses: Accesses
    tensors: Mapping[str, torch.Tensor]
    positions: Mapping[str, int]  # of these tensors among the arguments
    # the unwritten bytes of tensors that are not completely written
    fresh: dict[str, UnwrittenBytes] = field(default_factory=dict)
    uninitialised: dict[int, tuple[int, int]] = field(default_factory=dict)  # by position
    unwritten: dict[int, tuple[int, int]] = field(default_factory=dict)  # when it has run, by position
    reported: dict[int, int] = field(default_factory=dict)  # accesses out of bounds that are written down
    ran: bool = False  # it was executed by the interpreter

    def touched(self, kind: AccessKind) -> list[tuple[int, torch.Tensor]]:
        """The elements read before they were written, or the written elements, with argument positions."""
        may = may_read if kind == "load" else may_write
        names = [name for name in self.tensors if may(self.accesses.role(name))]
        return [(self.positions[name], self.tensors[name]) for name in names]


class ExactAccesses:
    """Records the accesses of launches on the host, and prevents those out of bounds."""

    def __init__(
        self, recording: Recording, fresh: FreshMemory, values: UnwrittenValues, *, allow_out_of_bounds: bool
    ) -> None:
        self._recording = recording
        self._values = values
        self._fresh = fresh
        self._fatal = not allow_out_of_bounds
        self._outside: dict[tuple[str, str, str, str], OutsideAccesses] = {}

    @property
    def outside(self) -> list[tuple[str, OutsideAccesses]]:
        """Accesses outside of arguments with the kernel's name, one for each argument, kind and line.

        Without loads inside of an argument's storage, which a kernel may mean: it reads padding.
        """
        return [(kernel, one) for (kernel, *_), one in self._outside.items()]

    def watch(self, watched: WatchedLaunch, reach: Reach | None, failing: Callable[[], None]) -> None:
        """Follow the accesses of a launch that is about to be made on this thread.

        reach   -- the memory that it may access through addresses; None: none
        failing -- called before an access outside of every storage is recorded
        """
        accesses = watched.accesses
        for name, tensor in watched.tensors.items():
            fresh = self._fresh.of(tensor)
            if fresh is not None:
                watched.fresh[name] = fresh

        def reported(outside: OutsideAccesses) -> None:
            with self._recording.lock:
                if not outside.inside:
                    failing()
                self._report(watched)

        def ended() -> None:
            with self._recording.lock:
                watched.ran = True
                watched.uninitialised.update(_uninitialised(watched))
                self._fresh.launched(accesses.blocks)
                self._values.launched(accesses.blocks)
                self._note_unwritten(watched)
                self._report(watched)
                if (race := race_of(watched.launch, accesses)) is not None:
                    self._recording.writer.append(race)
                elif undecided := undecided_of(accesses):
                    what = f"whether programs of {accesses.kernel} race: {undecided}"
                    self._recording.catalogue.not_covered(what, "")

        accesses.reach, accesses.fatal = reach, self._fatal
        accesses.reported.append(reported)
        accesses.ended.append(ended)

    def write(
        self, watched: WatchedLaunch, before: Mapping[int, Digest], after: Mapping[int, Digest]
    ) -> None:
        """Record the accesses of a launch that has run.

        before, after -- the digests of its arguments on each side of the launch, as far as they are known
        """
        sides: tuple[dict[int, str], dict[int, str]] = ({}, {})
        ranges: tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]] = ({}, {})
        partly = []
        boxes: tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]] = ({}, {})
        counts: tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]] = ({}, {})
        for name, position in watched.positions.items():
            known = watched.accesses.of(name)
            if known is None:
                continue
            argument, block = known
            for side, mask in enumerate((block.read(argument), block.written(argument))):
                if not mask.any():
                    continue
                digest = (before, after)[side].get(position)
                content = block.content if side else block.content_before
                if not mask.all():
                    if digest is None or digest.nan or digest.inf:
                        elements = content(argument)[mask.any(axis=1)]
                        counts[side][position] = nonfinite(elements, watched.tensors[name].dtype)
                    digest, listed = None, _ranges(block, argument, written=bool(side))
                    partly += [position] if side else []
                    boxes[side][position] = block.box(argument, written=bool(side))
                    if len(listed) <= 2 * _RUNS:
                        ranges[side][position] = listed
                sides[side][position] = digest.bits if digest else _bits(content(argument), mask)
        self._recording.writer.append(
            Access(
                watched.launch,
                *sides,
                *ranges,
                tuple(partly),
                watched.uninitialised,
                *boxes,
                watched.unwritten,
                *counts,
            )
        )

    def _note_unwritten(self, watched: WatchedLaunch) -> None:
        for name, tensor in watched.tensors.items() if self._fresh or self._values else ():
            elements = self._values.elements(tensor)
            if elements is not None:
                watched.unwritten[watched.positions[name]] = elements
            fresh, left = self._fresh.of(tensor), self._fresh.elements(tensor)
            if fresh is not None and left is not None and may_write(watched.accesses.role(name)):
                fresh.writer = PartialWrite(watched.launch, name, *left)

    def _report(self, watched: WatchedLaunch) -> None:
        # written at the first access, and anew with the counts after the kernel has run
        for number, one in enumerate(watched.accesses.outside):
            if watched.reported.get(number) != one.accesses:
                watched.reported[number] = one.accesses
                if not (one.inside and one.kind == "load"):
                    self._outside[watched.accesses.kernel, one.argument, one.kind, one.where] = one
                self._recording.writer.append(one.record(watched.launch))


def race_of(launch: int, accesses: Accesses) -> MemoryEvidence | None:
    """Programs, or threads, of a launch that access one address in no guaranteed order; or None.

    Call it when the launch has run, before its memory is changed.
    """
    accesses.end_programs()
    if accesses.conflict is None:
        return None
    conflict, where = accesses.conflict
    names = accesses.names_at(conflict.address)
    arguments = tuple(name.partition("[")[0] for name in names)
    return MemoryEvidence(launch, "race", arguments, _conflict_text(accesses, conflict), where)


def undecided_of(accesses: Accesses, line: Callable[[str], str] = str) -> str:
    """What the atomics of a launch that has run leave open about races, in a sentence; empty: nothing.

    line -- the line to name for one of the executed kernel
    """
    if accesses.conflict is not None:
        return ""
    if accesses.undecided is None:
        many = f"it has atomics, and more than {PROGRAMS} programs access one argument"
        return many if accesses.before.unknown else ""
    conflict, where = accesses.undecided
    return _conflict_text(accesses, conflict) + (f" ({line(where)})" if where else "")


def _conflict_text(accesses: Accesses, conflict: Conflict) -> str:
    element = ", which is ".join(accesses.names_at(conflict.address)) or "memory"
    writer, other = conflict.writer, conflict.other
    if conflict.of_threads:
        return f"threads of program {writer} read {element} and others write it, in no fixed order"
    if conflict.kind == "overwrite":
        what = f"programs {other} and {writer} write different values to {element}"
    elif conflict.kind == "store and atomic":
        what = f"program {writer} stores {element}, and program {other} changes it by an atomic"
    elif conflict.kind == "load and atomic":
        what = f"program {other} loads {element}, and program {writer} changes it by an atomic"
    else:
        what = f"program {writer} writes {element}, and program {other} reads it"
    order = "no atomic orders the two" if accesses.before.time else "programs have no fixed order"
    return f"{what}: {order}"


def _uninitialised(watched: WatchedLaunch) -> dict[int, tuple[int, int]]:
    uninitialised = {}
    for name, fresh in watched.fresh.items():
        known = watched.accesses.of(name)
        if known is not None:
            argument, block = known
            unwritten = logical(fresh.unwritten[argument.start - fresh.address :], argument.meta, 1)
            elements = np.flatnonzero(unwritten.all(axis=1) & block.read(argument).any(axis=1))
            if elements.size:
                uninitialised[watched.positions[name]] = (int(elements[0]), elements.size)
    return uninitialised


def _bits(content: Bytes, mask: Mask) -> str:
    """The digest of the accessed part of an argument; the ordinary digest if all of it was accessed.

    content -- [elements, bytes of one] in logical order
    mask    -- [elements, parts of one]

    The digest of a part covers all bytes, with zeros for bytes that were not accessed, followed by one bit
    for each byte, set if it was accessed; the first byte has the highest of eight bits.
    """
    if mask.all():
        return bits_of(content.reshape(-1))[0]
    touched = np.repeat(mask, content.shape[1] // mask.shape[1], axis=1)
    return bits_of(np.concatenate([(content * touched).reshape(-1), np.packbits(touched)]))[0]


def _ranges(block: MemoryBlock, argument: AccessedArgument, *, written: bool) -> tuple[int, ...]:
    # of its own bytes, in the order of their addresses
    between = block.written_bytes if written else block.read_bytes
    mask = between(argument.start, argument.stop)
    if not row_major(argument.meta):
        mask = mask & occupied(argument.meta)
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))  # of bool: a byte an element
    return tuple(map(int, edges))
