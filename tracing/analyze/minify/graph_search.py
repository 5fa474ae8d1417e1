"""Find a small graph that fails as the whole does: fewer nodes, then fewer results, then simpler inputs.

Nodes are left out by delta debugging. If a kept node reads a value of a node that is left out, the
value becomes an input with its recorded value, so every subset of the nodes can be executed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace

from tracing.analyze.bisect.delta_debugging import choices
from tracing.analyze.minify.graph_edit import GraphEdit, GraphNode, InputChange, Size, closed, sources
from tracing.analyze.minify.minify_events import CandidateTried, MinifyEvent, Minimal, SearchStep
from tracing.analyze.minify.trial import Trial, TrialVerdict, verdict

_LAYOUTS: Sequence[InputChange] = ("no grad", "own storage", "contiguous")
_VALUES: Sequence[InputChange] = ("zeros", "ones", "small integers")  # the simplest first
_ONE_BY_ONE = 8  # sizes that are made smaller by one at a time


class GraphSearch:
    """One graph."""

    def __init__(
        self,
        evaluate: Callable[[GraphEdit], Trial],
        nodes: Sequence[GraphNode],
        whole: GraphEdit,
        wanted: Trial,
        most: int,
    ) -> None:
        """Search from a whole that fails.

        evaluate -- executes a candidate
        nodes    -- of the whole, in order
        wanted   -- how the whole fails; its execution is counted
        most     -- executions after which the search ends; equal candidates are executed once
        """
        self._evaluate, self._nodes, self._most = evaluate, nodes, most
        self._known = {whole: wanted}
        self._wanted, self._best = wanted, whole
        self._read = sources(nodes, wanted.failing)

    def events(self) -> Iterator[MinifyEvent]:
        """Search; the last event is Minimal."""
        finished = True
        try:
            yield SearchStep("leaving out nodes")
            yield from self._fewer_nodes()
            yield SearchStep("leaving out results")
            yield from self._fewer_results()
            yield SearchStep("simplifying inputs")
            yield from self._simpler(_LAYOUTS)
            yield from self._smaller_sizes()
            yield from self._simpler(_VALUES)
        except _Spent:
            finished = False
        yield Minimal(self._best, self._known[self._best], len(self._known), finished)

    def _fewer_nodes(self) -> Iterator[MinifyEvent]:
        base = self._best
        search = choices(base.kept)
        try:
            choice = next(search)
            while True:
                edit = replace(base, kept=closed(self._nodes, choice))
                choice = search.send(bool(edit.kept) and (yield from self._fails(edit)))
        except StopIteration:
            return

    def _fewer_results(self) -> Iterator[MinifyEvent]:
        names, base = self._known[self._best].returned, self._best
        if names and not (yield from self._fails(replace(base, dropped=names))):
            for name in names if len(names) > 1 else ():
                yield from self._fails(replace(self._best, dropped=(*self._best.dropped, name)))

    def _simpler(self, changes: Sequence[InputChange]) -> Iterator[MinifyEvent]:
        for change in changes:
            names = self._applicable(change)
            if not names or (yield from self._fails(self._best.changed(change, names))):
                continue
            for name in names if len(names) > 1 else ():
                yield from self._fails(self._best.changed(change, [name]))

    def _applicable(self, change: InputChange) -> list[str]:
        inputs = self._known[self._best].inputs
        if change == "no grad":
            return [one.name for one in inputs if one.grad]
        if change == "own storage":
            return [one.name for one in inputs if one.shares]
        if change == "contiguous":
            return [one.name for one in inputs if one.stride != _contiguous(one.shape)]
        done = {name for known, name in self._best.changes if known in _VALUES}
        return [one.name for one in inputs if one.name not in done]

    def _smaller_sizes(self) -> Iterator[MinifyEvent]:
        sizes = {size for one in self._known[self._best].inputs for size in one.shape if size > 1}
        for size in sorted(sizes, reverse=True):
            if (yield from self._resized(size, 1)):
                continue
            while size > 2 and (yield from self._resized(size, size // 2)):
                size //= 2
            while 2 < size <= _ONE_BY_ONE and (yield from self._resized(size, size - 1)):
                size -= 1

    def _resized(self, size: int, smaller: int) -> Generator[MinifyEvent, None, bool]:
        for literals in (True, False):
            sizes = (*self._best.sizes, Size(size, smaller, literals))
            edit, code = replace(self._best, sizes=sizes), self._known[self._best].code
            if (yield from self._fails(edit)):
                return True
            if self._known[edit].code == code:  # no argument has that value
                return False
        return False

    def _fails(self, edit: GraphEdit) -> Generator[MinifyEvent, None, bool]:
        if edit not in self._known:
            if len(self._known) >= self._most:
                raise _Spent
            self._known[edit] = self._evaluate(edit)
            yield CandidateTried(edit, self._known[edit], self._verdict(edit))
        fails = self._verdict(edit) == "fail"
        if fails:
            self._best = edit
        return fails

    def _verdict(self, edit: GraphEdit) -> TrialVerdict:
        return verdict(self._known[edit], self._wanted, self._read)


class _Spent(Exception):
    # no executions are left
    pass


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = list[int](), 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
