"""Search for the first IR between passes that a judge calls bad; each IR is judged as recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from tracing.analyze.bisect import layers
from tracing.analyze.bisect.judge import STAGES
from tracing.analyze.bisect.probes import Compiled, Probes
from tracing.analyze.bisect.search import Judgement, Step, Suspect, Undecided, require_pair
from tracing.analyze.bisect.search_events import SearchEvent, Searching
from tracing.analyze.bisect.snapshots import (
    FirstSeen,
    JudgedSnapshot,
    NoBorder,
    Snapshot,
    first_seen,
    looked_at,
)

BETWEEN = "IR between passes"
END = ""  # the layer of the artefact that the judge reads
_OTHER = "the judge reads no IR of its language"


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The layers that remain to be searched after the IR between passes was judged."""

    mlir: bool = True
    llvm: bool = True
    good_until: int = -1  # the IR after this pass of MLIR is good


@dataclass(frozen=True, slots=True)
class SnapshotSearch:
    """Looks for the first IR that the judge says is bad."""

    probes: Probes
    languages: Sequence[str]  # languages that the judge reads; none: there is nothing to judge
    mlir: Sequence[Snapshot]  # the IR that enters the compilation, and what each pass of MLIR leaves
    llvm: Callable[[], Sequence[Snapshot]] | None  # the same for LLVM; None: the judge reads none of it

    def answer(self, full: Judgement) -> Generator[SearchEvent, None, tuple[FirstSeen | Undecided, Narrowed]]:
        """The one step at which good IR turns bad; if uncertain, the layers that remain to be searched.

        full -- the judgement of the full pipeline, which is bad

        Raises Contradiction if the judge changes its answer about one of the two when it is called once more.
        """
        last = max(self.probes.judge.stages, key=STAGES.index)
        end = JudgedSnapshot(Snapshot(END, Step(-1, "the pass that writes it as text"), last, ""), full)
        yield Searching("reading the IR between passes", len(self.mlir))
        seen = yield from looked_at(self.mlir, self._judged)
        first = first_seen([*seen, end])
        if self.llvm is not None and (isinstance(first, NoBorder) or first.bad is end):
            llvm = self.llvm()
            yield Searching("reading LLVM's IR between passes", len(llvm))
            seen += yield from looked_at(llvm, self._judged)
            first = first_seen([*seen, end])
        if isinstance(first, NoBorder):
            return Undecided(BETWEEN, first.because, _suspects(first.seen)), Narrowed()
        return self._confirmed(first, full)

    def _confirmed(self, first: FirstSeen, full: Judgement) -> tuple[FirstSeen | Undecided, Narrowed]:
        good, bad = first.good.snapshot, first.bad.snapshot
        is_bad = full if bad.layer == END else self._judged(bad, anew=True)
        require_pair(bad.step, self._judged(good, anew=True), is_bad)
        if not first.between and bad.layer != END:
            return first, Narrowed()
        because = (
            f"the IR after {good.step} is good, and the next IR that can be judged is that after {bad.step}"
        )
        return Undecided(BETWEEN, because), _narrowed(good, bad)

    def _judged(self, one: Snapshot, *, anew: bool = False) -> Judgement:
        if one.language not in self.languages:
            return Judgement("skip", _OTHER)
        key = ["ir", one.language, hashlib.blake2b(one.text.encode()).hexdigest()]
        build = self.probes.build(key, lambda: Compiled({one.language: one.text}))
        return self.probes.judgement(build, anew=anew)


def _narrowed(good: Snapshot, bad: Snapshot) -> Narrowed:
    if good.layer == layers.LLVM:
        return Narrowed(mlir=False)
    return Narrowed(llvm=bad.layer != layers.MLIR, good_until=good.step.index)


def _suspects(seen: Sequence[JudgedSnapshot]) -> tuple[Suspect, ...]:
    return tuple(Suspect(one.snapshot.step, "the IR turns bad after it") for one in seen)
