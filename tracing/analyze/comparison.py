"""Where two runs of one case differ: the first difference, then every other that does not follow from it.

Launches are paired (`alignment`), and of each pair is asked:

- is it launched alike? Else another configuration was compiled or chosen;
- is what it reads equal? Else look at who wrote it last: a launch, an operator, or nobody inside of the run;
- is what it wrote equal, where all that it read is? Else this kernel is not deterministic.

Only what a kernel reads counts as an input, and only what it writes as an output: an output buffer is
uninitialised before its launch. A launch that only one run has is a difference of its own.

A result that differs in memory which held other bits before the launch proves nothing by itself: the launch
may have left part of it unwritten. Of each of up to eight ranges of the elements a digest keeps 12 bits. A
range that was equal before the launch, and is not behind it, is this launch's difference; in one of 4096 it
was equal in these bits alone. What differed before, and neither run's launch changed, is not the launch's.
What differed before and was changed is not told apart: it is counted, and reported where a launch reads it
and leaves other results.

A difference follows from an earlier one if a launch whose results differed wrote the memory, or if another
input of the same launch differs; it is counted, and not reported. What an operator wrote after the first
difference *may* follow from it: what operators read is not recorded. What one kernel repeats, launch after
launch, is reported once and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest

from tracing.analyze.alignment import WINDOW
from tracing.analyze.divergence import Divergence, Key
from tracing.analyze.endings import ending
from tracing.analyze.process_pair import ProcessPair
from tracing.analyze.tally import Tally
from tracing.store import Run, rank_of


class Comparison(Tally):
    """Two runs being compared: iterate over what differs; the rest is known when that has ended.

    Launches that only one run has are looked for `window` launches ahead.

    Time: about 3 µs a launch while the runs are equal, some 10 µs behind the first difference.
    Memory: the window, and some 300 bytes for each distinct storage of run a.
    """

    def __init__(self, a: Run, b: Run, window: int = WINDOW) -> None:
        super().__init__(a, b, window)
        self.repeated: Counter[Key] = Counter()  # how often each reported difference came

    def __iter__(self) -> Iterator[Divergence]:
        for rank, (one, other) in self._processes():
            for found in ProcessPair(self, rank, one, other).differences():
                self.repeated[found.key] += 1
                if self.repeated[found.key] == 1:
                    self.reported += 1
                    yield found

    def _processes(self) -> Iterator[tuple[int, tuple[str, str]]]:
        ranks: dict[int, tuple[list[str], list[str]]] = {}
        for side, run in enumerate((self.a, self.b)):
            for process in run.processes():
                ranks.setdefault(rank_of(process), ([], []))[side].append(process)
        for rank, (ones, others) in sorted(ranks.items()):
            for one, other in zip_longest(ones, others):
                if one and other:
                    yield rank, (one, other)
                else:
                    there, lacks = (self.a, self.b) if one else (self.b, self.a)
                    early = ending(lacks, rank)
                    why = f"; in {lacks.name} that rank {early}" if early else ""
                    self.note(
                        f"process {(one or other).strip('-')} of rank {rank} is in {there.name} alone{why}"
                    )
