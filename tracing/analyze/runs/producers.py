"""Find the launches and operators that a launch's inputs come from, and what those had read in turn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.analyze.nonfinite.data_events import DataEvent, data_events
from tracing.model import KernelLaunch
from tracing.store import Run, rank_of

DEPTH = 6  # writers in a row that are followed back
NODES = 40  # of one graph

_Parents: TypeAlias = tuple[tuple[str, int], ...]  # the name of an input, and the event that wrote it last


@dataclass(frozen=True, slots=True)
class ProducerNode:
    """A launch or an operator outside of Triton."""

    kind: Literal["launch", "operator"]
    index: int  # in its process
    name: str


@dataclass(frozen=True, slots=True)
class ProducerEdge:
    """One event read what another one had written."""

    writer: int  # positions among the nodes
    reader: int
    argument: str  # of the reader


@dataclass(frozen=True, slots=True)
class ProducerGraph:
    """A launch, the first node, and the events that its inputs come from."""

    nodes: tuple[ProducerNode, ...]
    edges: tuple[ProducerEdge, ...]
    cut: bool  # further ones exist


def producers(run: Run, rank: int, launches: Collection[int]) -> dict[int, ProducerGraph]:
    """The producers of some launches of one rank, by the launch's index.

    The last event that wrote to the storage of an input counts as its writer, whichever bytes it wrote.

    Cost: a pass over the launches and operators of the rank, some 40 µs each.
    """
    graphs: dict[int, ProducerGraph] = {}
    for process in run.processes():
        if rank_of(process) != rank or not launches:
            continue
        nodes: list[ProducerNode] = []
        parents: list[_Parents] = []
        writers: dict[int, int] = {}  # by storage
        for event in data_events(run, process):
            parents.append(_parents(event, writers))
            writers |= {one.storage: len(nodes) for one in event.writes if one.storage is not None}
            launched = isinstance(event.source, KernelLaunch)
            nodes.append(ProducerNode("launch" if launched else "operator", event.source.index, event.name))
            if launched and event.source.index in launches:
                graphs[event.source.index] = _graph(len(nodes) - 1, nodes, parents)
    return graphs


def _parents(event: DataEvent, writers: dict[int, int]) -> _Parents:
    read = ((one.name, one.storage) for one in event.reads if one.storage is not None)
    return tuple((name, writers[storage]) for name, storage in read if storage in writers)


def _graph(last: int, nodes: list[ProducerNode], parents: list[_Parents]) -> ProducerGraph:
    # breadth first: the nearest producers are kept where there are many
    positions = {last: 0}
    edges: list[ProducerEdge] = []
    cut, reached = False, [last]
    for _ in range(DEPTH):
        following: list[int] = []
        for reader in reached:
            for argument, writer in parents[reader]:
                if writer not in positions:
                    if len(positions) == NODES:
                        cut = True
                        continue
                    positions[writer] = len(positions)
                    following.append(writer)
                edges.append(ProducerEdge(positions[writer], positions[reader], argument))
        reached = following
    return ProducerGraph(
        tuple(nodes[one] for one in positions), tuple(edges), cut or any(parents[one] for one in reached)
    )
