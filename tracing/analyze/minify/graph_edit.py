"""A candidate of the search: the kept nodes of a captured graph, and the changes of its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

InputChange: TypeAlias = Literal["no grad", "own storage", "contiguous", "zeros", "ones", "small integers"]


@dataclass(frozen=True, slots=True)
class Size:
    """Replaces one size by a smaller one in every dimension of the inputs."""

    size: int
    smaller: int
    literals: bool  # also replace numbers of that value among the arguments of nodes


@dataclass(frozen=True, slots=True)
class GraphEdit:
    """A candidate. Kept nodes read recorded values where a node that they read is left out."""

    graph: int  # of the case, in the order of capture
    kept: tuple[str, ...]  # names of nodes, in the order of the graph
    dropped: tuple[str, ...] = ()  # kept nodes that the graph does not return, although it could
    changes: tuple[tuple[InputChange, str], ...] = ()  # of inputs, by name
    sizes: tuple[Size, ...] = ()

    def changed(self, change: InputChange, names: Iterable[str]) -> GraphEdit:
        """The same with one more change of some inputs."""
        return replace(self, changes=(*self.changes, *((change, name) for name in names)))


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of a captured graph that calls something."""

    name: str
    reads: tuple[str, ...]  # names of nodes that call something
    opaque: bool = False  # its value is no tensor and no number: what reads it needs the node itself
    nothing: bool = False  # its value is None: it is kept for its effect
    part_of: str = ""  # the node of whose value it takes a part


def closed(nodes: Sequence[GraphNode], kept: Iterable[str]) -> tuple[str, ...]:
    """The nodes that have to be kept with some nodes.

    An opaque node requires the opaque nodes that it reads, and the nodes without a value that end its region,
    such as the exit of autocast.
    """
    known = {one.name: one for one in nodes}
    wanted, waiting = set[str](), list(kept)
    while waiting:
        name = waiting.pop()
        if name in wanted:
            continue
        wanted.add(name)
        waiting += [read for read in known[name].reads if known[read].opaque]
        if known[name].opaque:
            waiting += [one.name for one in nodes if name in one.reads and (one.nothing or one.opaque)]
    for one in nodes:  # in order: parts of a removed part are removed, too
        if one.part_of and one.part_of not in wanted and not known[one.part_of].opaque:
            wanted.discard(one.name)
    return tuple(one.name for one in nodes if one.name in wanted)


def sources(nodes: Sequence[GraphNode], names: Iterable[str]) -> frozenset[str]:
    """The nodes from which some nodes are computed, those included."""
    known = {one.name: one for one in nodes}
    read, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name in known and name not in read:
            read.add(name)
            waiting += known[name].reads
    return frozenset(read)
