"""Search the layers of one kernel's compilation for the pass that turns its result bad: the last layer first.

The first layer with an answer is believed, and earlier layers are not searched. Yields events.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from tracing.analyze.bisect import layers
from tracing.analyze.bisect.evidence import Evidence
from tracing.analyze.bisect.execution import Meaning
from tracing.analyze.bisect.judge import STAGES
from tracing.analyze.bisect.layers import Bisection
from tracing.analyze.bisect.search import FirstBad, Judgement, Layer, Undecided, first_bad
from tracing.analyze.bisect.search_events import (
    Answer,
    Answered,
    Building,
    Executed,
    FullPipeline,
    LeftOut,
    NoAnswer,
    NotSearched,
    SearchEvent,
    Searching,
)
from tracing.analyze.bisect.snapshot_search import Narrowed, SnapshotSearch
from tracing.errors import Problem

_Search: TypeAlias = Generator[SearchEvent, None, Answer | None]  # None: the layer is not searched
_NOT_OPTIONAL = "LLVM: steps that cannot be left out (the translation to LLVM IR, instruction selection)"
_NOT_LEVELS = "ptxas: steps of every version and every level"
_INPUT = "the kernel itself, as it enters the first stage, or faults in several passes at once"


class LayerSearch:
    """The layers of one kernel."""

    def __init__(
        self,
        bisection: Bisection,
        snapshots: SnapshotSearch,
        execute: Callable[[], Meaning],
        stages: Sequence[str],
    ) -> None:
        """Search one compilation.

        snapshots -- judges the IR between passes; it also has the judge
        execute   -- searches the pass that changes the values that the IR computes
        stages    -- that the compilation has
        """
        self._bisection, self._snapshots = bisection, snapshots
        self._execute, self._stages = execute, stages
        self._last = max(snapshots.probes.judge.stages, key=STAGES.index)
        self._evidence = Evidence(bisection)
        self._narrowed = Narrowed()
        self._names: Mapping[str, Judgement] = {}

    def events(self) -> Iterator[SearchEvent]:
        """Search; ends with FullPipeline if that is good, with Answered, or with NoAnswer.

        Raises Problem if the full pipeline cannot be judged, Contradiction if the judge contradicts itself.
        """
        yield Building("building and judging the full pipeline")
        full = self._bisection.full()
        yield FullPipeline(full)
        if full.verdict == "skip":
            raise Problem(
                f"cannot be decided, because the full pipeline cannot be judged: {full.detail}",
                "COMMAND must judge the result of the whole pipeline as good or bad; if it takes too long, "
                "--seconds gives it more time",
            )
        if full.verdict == "bad":
            yield from self._layers(full)

    def _layers(self, full: Judgement) -> Iterator[SearchEvent]:
        undecided: list[Undecided] = []
        for search in self._searches(full):
            answer = yield from search()
            if answer is None:
                continue
            weighed = self._evidence.weighed(answer, self._names)
            yield Answered(answer, weighed)
            if not isinstance(weighed, Undecided):
                return
            undecided.append(weighed)
        yield NoAnswer(tuple(one for answer in undecided for one in answer.suspects), self._rest())

    def _searches(self, full: Judgement) -> Iterator[Callable[[], _Search]]:
        if self._snapshots.languages:
            yield partial(self._seen, full)
        if self._narrowed.mlir:
            yield self._executed
        if self._last == "cubin":
            yield from (partial(self._row, layer) for layer in self._bisection.ptxas())
        elif "ptx" in self._stages:
            yield partial(self._not_searched, "ptxas")
        if STAGES.index(self._last) < STAGES.index("llir"):
            yield partial(self._not_searched, layers.LLVM)
        elif self._narrowed.llvm:
            yield self._llvm
        if self._narrowed.mlir:
            yield partial(self._mlir, full)

    def _seen(self, full: Judgement) -> _Search:
        answer, self._narrowed = yield from self._snapshots.answer(full)
        return answer

    def _executed(self) -> _Search:
        yield Building("executing the IR between passes")
        self._evidence.meaning = self._execute()
        yield Executed(self._evidence.meaning)
        return None

    def _not_searched(self, layer: str) -> _Search:
        yield NotSearched(layer)
        return None

    def _mlir(self, full: Judgement) -> _Search:
        search = self._bisection.mlir(full, self._narrowed.good_until)
        yield Searching("leaving out MLIR passes", len(search.candidates()))
        answer = yield from search.search()
        self._names = search.names
        yield LeftOut(search.names)
        return answer

    def _llvm(self) -> _Search:
        yield Building("building all of LLVM's passes")
        try:
            layer = self._bisection.llvm()
        except Problem as problem:
            return Undecided(layers.LLVM, problem.problem)
        return (yield from self._row(layer))

    def _row(self, layer: Layer) -> Generator[SearchEvent, None, FirstBad | Undecided]:
        most = 1 + math.ceil(math.log2(max(2, len(layer.steps)))) + 2  # and two to confirm it
        yield Searching(f"searching {len(layer.steps)} {layer.name}", most)
        return (yield from first_bad(layer))

    def _rest(self) -> tuple[str, ...]:
        rest = {
            _NOT_OPTIONAL: self._narrowed.llvm and STAGES.index(self._last) >= STAGES.index("llir"),
            _NOT_LEVELS: self._last == "cubin",
            _INPUT: self._narrowed.mlir and self._narrowed.good_until < 0,
        }
        return tuple(what for what, possible in rest.items() if possible)
