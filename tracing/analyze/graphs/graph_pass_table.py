"""The passes of torch.compile over one graph, and the graph before and after each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tracing.analyze.graphs.graph_chains import Chain, chains
from tracing.analyze.graphs.graph_names import same_graph
from tracing.model import Blob, CompiledGraph
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class GraphPass:
    """A pass over a graph; or AOTAutograd or the partitioner, which write it anew."""

    index: int  # from 1, in the order of torch.compile; 0 is the graph that Dynamo traced
    stage: str  # "pre-grad", "AOTAutograd", "joint", "partitioner", "post-grad"
    name: str  # of the pass; AOTAutograd and the partitioner are stages of one pass, which has their name
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


def graph_passes(run: Run, chain: Chain) -> Iterator[GraphPass]:
    """The passes of a chain; reads each text once or twice."""
    for index, (before, after) in enumerate(itertools.pairwise(chain.steps), 1):
        texts = run.text(before.text), run.text(after.text)
        counts = len(texts[0].splitlines()), len(texts[1].splitlines())
        stage = after.part
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
