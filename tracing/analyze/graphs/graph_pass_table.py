"""The passes of torch.compile over one graph, and the graph before and after each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tracing.analyze.graphs.graph_chains import Chain, GraphStep, chains
from tracing.analyze.graphs.graph_names import same_graph
from tracing.model import Blob, CompiledGraph
from tracing.store import Run

FREEZING = "freezing"
_FROZEN = "get_attr _frozen_param"


@dataclass(frozen=True, slots=True)
class GraphPass:
    """A pass over a graph; or AOTAutograd, the partitioner or freezing, which write it anew."""

    index: int  # from 1, in the order of torch.compile; 0 is the graph that Dynamo traced
    stage: str  # "pre-grad", "AOTAutograd", "joint", "partitioner", "freezing", "post-grad"
    name: str  # of the pass; AOTAutograd, the partitioner and freezing are stages of one pass of their name
    code: str  # of a pass outside of torch: "mine (train.py:12)"
    changed: bool  # in more than the names of nodes
    before: Blob
    after: Blob
    nodes: tuple[int, int]  # lines of the graph before and after


def chain_of(run: Run, graph: CompiledGraph) -> Chain | None:
    """The recorded steps of a compiled graph; None: the run did not record them."""
    phase = "backward" if graph.phase == "backward" else "forward"
    own = (one for one in chains(run) if (one.compile_id, one.phase) == (graph.compile_id, phase))
    return next(own, None)


def decomposing_pass(run: Run, graph: CompiledGraph) -> int | None:
    """The index of AOTAutograd, which decomposes operators, as of `GraphPass`; None: it was not recorded."""
    chain = chain_of(run, graph)
    steps = enumerate(chain.steps) if chain is not None else ()
    return next((index for index, one in steps if one.part == "AOTAutograd"), None)


def freezes(run: Run, before: GraphStep, after: GraphStep) -> bool:
    """True if Inductor folds constants between two steps, as `torch._inductor.config.freezing` lets it."""
    frozen = after.label == "partitioner" and _FROZEN in run.text(after.text)
    return frozen and _FROZEN not in run.text(before.text)


def graph_passes(run: Run, chain: Chain) -> Iterator[GraphPass]:
    """The passes of a chain; reads each text once or twice."""
    for index, (before, after) in enumerate(itertools.pairwise(chain.steps), 1):
        texts = run.text(before.text), run.text(after.text)
        counts = len(texts[0].splitlines()), len(texts[1].splitlines())
        stage = FREEZING if freezes(run, before, after) else after.part
        yield GraphPass(
            index,
            stage,
            after.name or stage,
            after.code,
            not same_graph(*texts),
            before.text,
            after.text,
            counts,
        )
