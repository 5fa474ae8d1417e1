"""Compares two runs of one case: yields each difference that does not follow from an earlier one.

Launches are paired (`alignment`). Of each pair the comparison asks:

- are its settings and its code equal? Else another kernel, configuration or source was launched;
- are its inputs equal? Else which launch, operator or host write produced them (`causes`)?
- are its outputs equal, if all its inputs are? Else this kernel is not deterministic.

Only what a kernel reads counts as an input, and only what it writes as an output: an output buffer is
uninitialised before its launch. A launch that only one run has is a separate difference.

Without a GPU the interpreter records which bytes a launch read and wrote, so unwritten bytes never count as
its results. On a GPU, a different result proves nothing if the memory held different bits before the launch.
But a digest keeps 12 bits for each of up to eight ranges of the elements: a range that was equal before the
launch and differs afterwards is attributed to this launch.

A difference is a consequence if its bytes come, also through operators, from a launch that differed or that
only one run has: it is counted and not reported. A launch whose results depend on uninitialised memory is
reported only if a result of the case differs. Differences that one kernel repeats, launch after launch, are
reported once and counted. That a collective has other results although its inputs are equal is a consequence
of what differs on another rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TypeGuard

from tracing.analyze.align.alignment import WINDOW
from tracing.analyze.compare.cause_kinds import Cause, OperatorCause, OtherResults
from tracing.analyze.compare.causes.cause_answer import Follows
from tracing.analyze.compare.comparison_notes import Notes
from tracing.analyze.compare.divergence_kinds import Divergence, InputDiffers, Key, OneSided, key_of
from tracing.analyze.compare.kernel_code import KernelCodes
from tracing.analyze.compare.process_pair import ProcessPair
from tracing.analyze.runs.outcomes import ending
from tracing.analyze.runs.results import ResultDiffers, differing_results, results
from tracing.model import LaunchLine, OperatorCall, Outcome, TensorValue
from tracing.model.collectives import is_collective
from tracing.store import Run, rank_of

UNREAD_RESULTS = "values at the start and results are not compared"  # because a run is damaged


class Comparison:
    """The comparison of two runs: iteration yields the divergences; `notes` is complete after it.

    Launches that only one run has are recognised within the next `window` launches.

    Time: about 3 µs a launch while the runs are equal, some 40 µs after the first difference.
    Memory: the window, and some 400 bytes for each distinct range of memory.
    """

    def __init__(self, a: Run, b: Run, window: int = WINDOW) -> None:
        self.notes = Notes(a, b, window)
        self.repeated: Counter[Key] = Counter()  # number of repetitions of each reported difference
        self.processes: list[tuple[int, tuple[str, str]]] = []  # that were compared, with their ranks
        self._pairs: dict[int, ProcessPair] = {}  # of each rank the first
        self._missing: Counter[Key] = Counter()  # most launches in a row that one run lacks before its end

    def __iter__(self) -> Iterator[Divergence]:
        notes = self.notes
        codes = KernelCodes(notes.a, notes.b)
        received: list[InputDiffers] = []
        for rank, processes in self._processes():
            self.processes.append((rank, processes))
            with notes.damage("later launches are not compared"):
                pair = ProcessPair(notes, rank, processes, codes)
                self._pairs.setdefault(rank, pair)
                for divergence in pair.differences():
                    if _is_received(divergence):
                        received.append(divergence)
                    elif self._is_new(divergence):
                        yield divergence
        yield from self._received(received)
        for note in codes.notes:
            notes.add(note)
        with notes.damage(UNREAD_RESULTS):
            yield from self._suspected()

    def _is_new(self, divergence: Divergence) -> bool:
        # whether it is to be reported; counts it
        key = self._key(divergence)
        self.repeated[key] += 1
        self.notes.reported += self.repeated[key] == 1
        return self.repeated[key] == 1

    def _received(self, divergences: Sequence[InputDiffers]) -> Iterator[Divergence]:
        # results of collectives with equal inputs on their rank: they follow from what differs on another one
        size = self.notes.a.info.world_size  # 1: the other ranks have runs of their own
        everywhere = size > 1 and {rank for rank, _ in self.processes} >= set(range(size))
        explained = self.notes.reported > 0
        for one in divergences:
            assert isinstance(one.cause, OperatorCause) and isinstance(one.cause.how, OtherResults)
            if explained:
                self.notes.follows(one)
                continue
            how = replace(one.cause.how, why="not deterministic" if everywhere else "received")
            proven = one.cause.proven and everywhere
            divergence = replace(one, cause=replace(one.cause, how=how, proven=proven))
            if self._is_new(divergence):
                yield divergence

    def _key(self, divergence: Divergence) -> Key:
        # launches that the last step of a loop lacks are those that its other steps lack
        key = key_of(divergence)
        if isinstance(divergence, OneSided):
            before = key_of(replace(divergence, last=False))
            if not divergence.last:
                self._missing[before] = max(self._missing[before], divergence.count)
            elif divergence.count <= self._missing[before]:
                return before
        return key

    def require_undamaged(self) -> None:
        """Raise Problem if damage of a run ended the comparison, for callers that do not print the notes."""
        if self.notes.damaged is not None:
            raise self.notes.damaged

    def _suspected(self) -> Iterator[Divergence]:
        # the result if nothing else differs: doubts and consequences
        notes = self.notes
        known, differing = bool(results(notes.a)), bool(differing_results(notes.a, notes.b))
        suspect = (
            notes.suspect if differing or (notes.uninitialised and not known) else notes.first_consequence
        )
        suspect = suspect or self._order_of_results()
        if not (notes.reported or notes.started) and suspect is not None:
            notes.reported += 1
            self.repeated[key_of(suspect)] += 1
            yield suspect

    def _order_of_results(self) -> Divergence | None:
        # launches that are equal one by one, but wrote the memory of a result in another order
        for result in differing_results(self.notes.a, self.notes.b):
            pair = self._pairs.get(result.rank)
            if pair is not None and pair.unshown and isinstance(self.cause_of(result), Follows):
                return pair.unshown
        return None

    def cause_of(self, result: ResultDiffers) -> Cause | Follows | None:
        """The cause of a different result, once all launches were compared; None: unknown."""
        pair = self._pairs.get(result.rank)
        values = [results(run).get((result.rank, result.name)) for run in (self.notes.a, self.notes.b)]
        a, b = values
        if pair is None or not isinstance(a, TensorValue) or not isinstance(b, TensorValue):
            return None
        return pair.cause_of(a, b) if a.address and b.address else None

    def _processes(self) -> Iterator[tuple[int, tuple[str, str]]]:
        notes = self.notes
        ranks: dict[int, tuple[list[str], list[str]]] = {}
        for side, run in enumerate((notes.a, notes.b)):
            # a process without launches may still have ended early
            kinds = (LaunchLine, OperatorCall, Outcome)
            for process in sorted({one for kind in kinds for one in run.processes(kind)}):
                ranks.setdefault(rank_of(process), ([], []))[side].append(process)
        for rank, (ones, others) in sorted(ranks.items()):
            for one, other in zip_longest(ones, others):
                if one and other:
                    yield rank, (one, other)
                else:
                    there, lacks = (notes.a, notes.b) if one else (notes.b, notes.a)
                    early = ending(lacks, rank)
                    why = f"; in {lacks.name} that rank {early}" if early else ""
                    process = (one or other).strip("-")
                    notes.add(f"only {there.name} has process {process} of rank {rank}{why}")


def _is_received(divergence: Divergence) -> TypeGuard[InputDiffers]:
    # whether another rank may have given a collective what differs
    if not isinstance(divergence, InputDiffers) or not isinstance(divergence.cause, OperatorCause):
        return False
    return divergence.cause.not_deterministic and is_collective(divergence.cause.names[0])
