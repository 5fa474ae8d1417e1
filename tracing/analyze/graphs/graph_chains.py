"""Compare one graph of two runs after each of Inductor's passes, and find the pass at which they diverge.

A chain is the sequence of texts of one graph between Dynamo and the code generator: before and after each
pass of the parts pre-grad, joint and post-grad. A training graph has two chains, forward and backward,
which share their first two parts.

The passes of two chains are aligned by part and name, in order. After each pass the texts are compared,
ignoring the names of nodes. A pass that only one run has is compared with the current text of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import TypeAlias

from tracing.analyze.graphs.graph_names import same_graph
from tracing.model import Blob, GraphText
from tracing.store import Run

TextOf: TypeAlias = Callable[[Blob], str]
ORDER = ("pre-grad", "joint", "post-grad")
UNNAMED = "without a name"  # of what follows the last pass of a part that torch names
_BEFORE = {"pre-grad": "Dynamo", "joint": "AOTAutograd", "post-grad": "partitioner"}


@dataclass(frozen=True, slots=True)
class GraphStep:
    """A pass and its output, or the output of Dynamo, AOTAutograd or the partitioner before a part."""

    part: str  # "joint"; "Dynamo"
    name: str  # of the pass; "": the step has no passes that are recorded
    text: Blob
    code: str = ""  # of a pass outside of torch: "mine (train.py:12)"

    @property
    def label(self) -> str:
        """For people: "joint pass remove_noop_ops", "Dynamo"."""
        return f"{self.part} pass {self.name}" if self.name else self.part


@dataclass(frozen=True, slots=True)
class Chain:
    """The steps of one graph."""

    compile_id: str
    phase: str  # "forward", "backward"
    steps: Sequence[GraphStep]

    @property
    def complete(self) -> bool:
        """False: a pass raised, or the compile was interrupted."""
        return bool(self.steps) and (self.steps[-1].part, self.steps[-1].name) == (ORDER[-1], UNNAMED)

    @property
    def label(self) -> str:
        """For people: "graph 0/0 forward"."""
        return f"graph {self.compile_id} {self.phase}"


@dataclass(frozen=True, slots=True)
class GraphStepPair:
    """A step of both chains, or of one; the texts are what each chain has after it."""

    a: GraphStep | None
    b: GraphStep | None
    texts: tuple[Blob, Blob]
    equal: bool

    @property
    def label(self) -> str:
        """The step's name for people."""
        one = self.a or self.b
        assert one is not None
        return one.label


@dataclass(frozen=True, slots=True)
class ChainPair:
    """The chains of one graph in two runs, step by step."""

    a: Chain
    b: Chain
    pairs: Sequence[GraphStepPair]

    def divergence(self) -> GraphStepPair | None:
        """The step from which on the graphs differ to the end; None: they are equal at the end."""
        if not self.pairs or self.pairs[-1].equal:
            return None
        since = max((i + 1 for i, pair in enumerate(self.pairs) if pair.equal), default=0)
        return self.pairs[since]

    def stopped(self) -> GraphStepPair | None:
        """The step of b at which a stops; None: a is complete, or b is not."""
        if self.a.complete or not self.b.complete:
            return None
        ended = max((i + 1 for i, pair in enumerate(self.pairs) if pair.a is not None), default=0)
        return next((pair for pair in self.pairs[ended:]), None)

    def transient(self) -> GraphStepPair | None:
        """The first step after which the graphs differ for a while and are equal later."""
        end = self.divergence()
        before = self.pairs[: self.pairs.index(end)] if end else self.pairs
        return next((pair for pair in before if not pair.equal), None)


def chains(run: Run) -> list[Chain]:
    """The chains of a run in the order of their compiles; none if it was recorded without --graph-passes."""
    texts = sorted(run.records(GraphText), key=lambda one: one.index)
    by_compile: dict[str, list[GraphText]] = {}
    for one in texts:
        by_compile.setdefault(one.compile_id, []).append(one)
    return [chain for compile_id, known in by_compile.items() for chain in _chains_of(compile_id, known)]


def _chains_of(compile_id: str, texts: Sequence[GraphText]) -> Iterator[Chain]:
    numbers = sorted({one.number for one in texts if one.part == "post-grad"}) or [0]
    for number in numbers:
        own = [one for one in texts if one.part != "post-grad" or one.number == number]
        steps = [_step(one) for part in ORDER for one in own if one.part == part]
        yield Chain(compile_id, "backward" if number else "forward", steps)


def _step(one: GraphText) -> GraphStep:
    if one.name == "":
        return GraphStep(_BEFORE[one.part], "", one.text)
    return GraphStep(one.part, UNNAMED if one.name == "end" else one.name, one.text, one.code)


def chain_pair(a: Chain, b: Chain, text_a: TextOf, text_b: TextOf) -> ChainPair:
    """Compare two chains; the texts of two blobs are compared once."""
    known_a, known_b = cache(text_a), cache(text_b)

    @cache
    def same(one: Blob, other: Blob) -> bool:
        return one == other or same_graph(known_a(one), known_b(other))

    return ChainPair(a, b, list(_pairs(a.steps, b.steps, same)))


def _pairs(
    a: Sequence[GraphStep], b: Sequence[GraphStep], same: Callable[[Blob, Blob], bool]
) -> Iterator[GraphStepPair]:
    now_a: Blob | None = None
    now_b: Blob | None = None
    for one, other in _aligned(a, b):
        now_a, now_b = (one.text if one else now_a), (other.text if other else now_b)
        if now_a is not None and now_b is not None:
            yield GraphStepPair(one, other, (now_a, now_b), same(now_a, now_b))


def _aligned(
    a: Sequence[GraphStep], b: Sequence[GraphStep]
) -> Iterator[tuple[GraphStep | None, GraphStep | None]]:
    of_a, of_b = ([(one.part, one.name) for one in steps] for steps in (a, b))
    for kind, i, i_end, j, j_end in SequenceMatcher(None, of_a, of_b, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from zip(a[i:i_end], b[j:j_end], strict=True)
        else:
            yield from ((one, None) for one in a[i:i_end])
            yield from ((None, other) for other in b[j:j_end])
