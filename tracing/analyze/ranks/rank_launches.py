"""Compare one launch of all ranks: its settings, its code, what it read, and what it wrote.

Where the interpreter recorded the exact accesses of every rank, only the elements that the launch read and
wrote count. Elsewhere whole arguments were digested: a result proves nothing if its memory held other bits
before the launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tracing.analyze.compare.kernel_code import CodeDifference, KernelCodes
from tracing.analyze.compare.signature_pair import SignaturePair, Slot, signature_pair
from tracing.analyze.ranks.rank_events import RankEvent, RankStep
from tracing.model import Kernel
from tracing.store import Run

_PROGRAM = ("source", "ttir")  # later stages also depend on the alignment of each rank's tensors


@dataclass(frozen=True, slots=True)
class RankLaunch:
    """One launch of all ranks."""

    step: RankStep
    pairs: Mapping[int, SignaturePair]  # of the lowest rank and each rank
    kernels: Mapping[int, str]  # the code of each rank; equal for equal code
    code: CodeDifference | None  # of the lowest rank and the first rank with other code

    @property
    def first(self) -> RankEvent:
        """The launch of the lowest rank."""
        return next(iter(self.step.values()))

    @property
    def settings(self) -> dict[int, str]:
        """The settings of each rank that differ; empty: none do."""
        texts = {rank: _changed(pair, "b") for rank, pair in self.pairs.items()}
        if len(set(texts.values())) == 1:
            return {}
        theirs = next(_changed(pair, "a") for pair in self.pairs.values() if pair.changes)
        return {rank: text or theirs for rank, text in texts.items()}

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The digests that all ranks have in common."""
        return min((pair.slots for pair in self.pairs.values()), key=len)

    @property
    def digested(self) -> bool:
        """True if all that the kernel may read and write was digested on every rank."""
        assert self.first.launched is not None
        has = {(slot.side, slot.position) for slot in self.slots}
        args = enumerate(self.first.launched[1].args)
        wanted = {(side, n) for n, arg in args for side in _sides(arg.reads, arg.writes)}
        return wanted <= has and not any(pair.addresses for pair in self.pairs.values())

    @property
    def reads(self) -> bool:
        """True if the launch reads a tensor."""
        return any(slot.side == "before" for slot in self.slots)

    def unequal(self) -> list[Slot]:
        """The inputs that are not equal on all ranks."""
        inputs = (slot for slot in self.slots if slot.side == "before")
        return [one for one in inputs if _unlike(self.bits(one)) and self.touched_equally(one) is not True]

    def outputs(self) -> list[Slot]:
        """The outputs that are not equal on all ranks."""
        slots: dict[int, Slot] = {}
        for rank, event in self.step.items():
            assert self.first.row and event.row
            for slot in self.pairs[rank].differing(self.first.row, event.row):
                if slot.side == "after" and slot.differs_by_writing(self.first.row, event.row):
                    slots.setdefault(slot.position, slot)
        return [slot for slot in slots.values() if self.touched_equally(slot) is not True]

    def proves(self, output: Slot) -> bool:
        """True if the launch wrote other bits on some rank; False: perhaps it left some of them unwritten."""
        return self.touched_equally(output) is False or not self._held_other_bits(output)

    def touched_equally(self, slot: Slot) -> bool | None:
        """True if all ranks read, or wrote, equal bytes; None: only whole arguments were digested."""
        digests = set()
        for event in self.step.values():
            if event.access is None:
                return None
            side = event.access.read if slot.side == "before" else event.access.written
            digests.add(side.get(slot.position, ""))
        return len(digests) == 1

    def bits(self, slot: Slot) -> dict[int, str]:
        """One digest on every rank."""
        by_rank = {}
        for rank, event in self.step.items():  # its position among the digests may differ between ranks
            same = next(
                (s for s in self.pairs[rank].slots if (s.side, s.position) == (slot.side, slot.position)),
                None,
            )
            by_rank[rank] = event.row.bits(same.b, same.b + 1) if same and event.row else ""
        return by_rank

    def name(self, slot: Slot) -> str:
        """The argument of a digest."""
        assert self.first.launched is not None
        return self.first.launched[1].args[slot.position].name

    def _held_other_bits(self, slot: Slot) -> bool:
        first = self.first.row
        return any(
            one.held_other_bits(first, event.row)
            for rank, event in self.step.items()
            for one in self.pairs[rank].slots
            if first and event.row and (one.side, one.position) == ("after", slot.position)
        )


class RankLaunches:
    """Compares launches; what signatures and kernels have in common is computed once."""

    def __init__(self, run: Run) -> None:
        self._codes = KernelCodes(run, run)
        self._pairs: dict[object, SignaturePair] = {}

    @property
    def notes(self) -> list[str]:
        """Kernels whose code was lost."""
        return list(dict.fromkeys(self._codes.notes))

    def of(self, step: RankStep) -> RankLaunch:
        """The launch of all ranks; they launch kernels of one name."""
        lowest, first = next(iter(step.items()))
        pairs = {rank: self._pair((lowest, first), (rank, event)) for rank, event in step.items()}
        return RankLaunch(step, pairs, *self._kernels(step, pairs))

    def _kernels(
        self, step: RankStep, pairs: Mapping[int, SignaturePair]
    ) -> tuple[dict[int, str], CodeDifference | None]:
        known: list[Kernel] = []
        by_rank, shown = dict[int, str](), None
        for rank, event in step.items():
            assert event.launched is not None
            kernel, alike = event.launched[0], not any(pair.changes for pair in pairs.values())
            for one in known:
                code = self._codes.difference(one, kernel, alike=alike)
                if code is None:
                    kernel = one
                    break
                shown = shown or code
            else:
                known.append(kernel)
            by_rank[rank] = f"kernel {kernel.hash[:12]}"
        return by_rank, shown

    def _pair(self, one: tuple[int, RankEvent], other: tuple[int, RankEvent]) -> SignaturePair:
        (rank_a, a), (rank_b, b) = one, other
        assert a.row and b.row and a.launched and b.launched
        patterns = (a.row.before, a.row.after, b.row.before, b.row.after)
        key = (rank_a, a.row.line.signature, rank_b, b.row.line.signature, *patterns)
        pair = self._pairs.get(key)
        if pair is None:
            pair = self._pairs[key] = signature_pair(a.row, b.row, a.launched, b.launched)
        return pair


def is_other_program(code: CodeDifference) -> bool:
    """True if the ranks compile other programs, not one program for tensors of another alignment."""
    return code.stage in _PROGRAM


def _sides(reads: bool, writes: bool) -> Iterator[Literal["before", "after"]]:
    if reads:
        yield "before"
    if writes:
        yield "after"


def _unlike(by_rank: Mapping[int, str]) -> bool:
    return len(set(by_rank.values())) > 1


def _changed(pair: SignaturePair, side: Literal["a", "b"]) -> str:
    return ", ".join(f"{one.name}={getattr(one, side)}" for one in pair.changes)
