"""The values of a recorded FX graph, and what computes each of them from others.

An operator that works in place changes the value of a node. So a value is a node and a version: the number
of writes so far to the memory that the node has or views.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tracing.judge.fx.no_reference import NoReference
from tracing.judge.fx.operators import (
    allocates,
    is_empty,
    is_generated,
    is_random,
    overwritten,
    references,
    resolved,
    returned,
    states,
    unwritten,
    viewed,
    written_element,
)
from tracing.judge.fx.recorded_values import is_dense
from tracing.judge.fx.saved_states import given_states, saved_states, without_states
from tracing.store.graph_file import FxGraph, FxNode, PythonLine

# operators that write every element of their first argument, or return one like it, and do not read it
_OVERWRITING = ("aten::copy", "aten::copy_", "aten::fill", "aten::fill_", "aten::zero", "aten::zero_")


class FxValue(NamedTuple):
    """The value of a node after a number of writes to the memory that it has or views."""

    node: str
    writes: int


class FxPlan(NamedTuple):
    """The nodes to execute for some values, in the order of the graph."""

    nodes: tuple[str, ...]
    targets: tuple[FxValue, ...]
    draws: bool  # random numbers, other than from a state that is given
    uninitialised: bool  # it computes with unwritten memory
    generated: bool  # all that it draws follows from the seeds that it reads: see random_numbers.py


Given = Mapping[FxValue, Any]  # tensors, and numbers of sizes


class FxValues:
    """Which nodes share memory, which write to it, and what a value is computed from."""

    def __init__(self, graph: FxGraph, *, on_gpu: bool) -> None:
        """on_gpu -- the generators from which nodes draw have states that the graph gives or returns"""
        given, graph = given_states(graph), without_states(graph)
        self.graph = graph
        self.nodes: dict[str, FxNode] = {node.name: node for node in graph.nodes}
        self.order = {node.name: i for i, node in enumerate(graph.nodes)}
        self._same = {node.name: one for node in graph.nodes if (one := returned(node)) is not None}
        self._same |= {
            node.name: one for node in graph.nodes if (one := written_element(node, self.nodes)) is not None
        }
        self._views = {node.name: base for node in graph.nodes if (base := viewed(node)) is not None}
        # nodes of which any value is right: the state of a generator, and what attention does not write
        self.undetermined = saved_states(graph) | unwritten(graph)
        # of nodes that draw: the results that are the state of their generator, or the input that it is
        self.states = {**states(graph), **given} if on_gpu else {}
        self.writers: dict[str, list[str]] = {}  # of a root, the nodes that write to it
        for node in graph.nodes:
            for root in dict.fromkeys(map(self.root, overwritten(node))):
                self.writers.setdefault(root, []).append(node.name)

    @property
    def inputs(self) -> list[str]:
        return [node.name for node in self.graph.nodes if node.op == "placeholder"]

    @property
    def outputs(self) -> list[Any]:
        """The results of the graph, in order: {"node": NAME}, numbers, None."""
        last = self.graph.nodes[-1]
        if last.op != "output" or not last.args:
            return []
        return [last.args[0]] if isinstance(last.args[0], Mapping) else list(last.args[0])

    def tensor(self, node: str) -> str:
        """The node that created the tensor which a node returns: in-place operators return their operand."""
        while node in self._same:
            node = self._same[node]
        return node

    def root(self, node: str) -> str:
        """The node whose memory a node views; a node that is no view itself."""
        node = self.tensor(node)
        while node in self._views:
            node = self.tensor(self._views[node])
        return node

    def allocates(self, node: str) -> bool:
        """True if a node is computed by an operator of torch whose results have memory of their own."""
        return allocates(self.nodes[self.maker(node)])

    def maker(self, node: str) -> str:
        """The node that calls the operator of which a node is a result; an operator may have several."""
        known = self.nodes[node]
        return next(references(known.args), node) if known.target == "_operator.getitem" else node

    def operator(self, node: str) -> str:
        """The operator that a node calls, or of which it is a result: "aten::mm"."""
        while (maker := self.maker(node)) != node:
            node = maker
        return self.nodes[node].target

    def lines(self, nodes: Iterable[str]) -> tuple[PythonLine, ...]:
        """The lines of the program that nodes come from, as far as they are known."""
        return self.graph.lines_of(self.nodes[one] for one in nodes if one in self.nodes)

    def is_view(self, node: str) -> bool:
        return node in self._views

    def value(self, node: str, at: int | None = None) -> FxValue:
        """The value of a node just after it is computed, or when the node of order `at` reads it."""
        point = self.order[node] + 1 if at is None else at
        writers = self.writers.get(self.root(node), ())
        return FxValue(self.tensor(node), sum(self.order[one] < point for one in writers))

    def after(self, writer: str, root: str) -> FxValue:
        """The value of a root after one of its writers."""
        return FxValue(root, self.writers[root].index(writer) + 1)

    def plan(self, targets: Sequence[FxValue], given: Given) -> FxPlan:
        """The nodes to execute to compute values from given ones.

        Raises NoReference if the given values are not sufficient.
        """
        start = {value.node: value.writes for value in given}
        needed: set[str] = set()
        requests = list(targets)
        seen: set[FxValue] = set()
        while requests:
            value = requests.pop()
            if value in seen:
                continue
            seen.add(value)
            nodes, more = self._missing(value, start)
            requests += more
            for name in nodes:
                if name not in needed:
                    needed.add(name)
                    requests += self._read(name)
        ordered = sorted(needed, key=self.order.__getitem__)
        parts = [self.nodes[name] for name in ordered]
        random = [one for one in parts if is_random(one) and not self.state(one, start)]
        uninitialised = any(is_empty(one) and _is_read(one, parts) for one in parts)
        generated = all(map(is_generated, random))
        return FxPlan(tuple(ordered), tuple(targets), bool(random), uninitialised, generated)

    def state(self, node: FxNode, known: Container[str]) -> tuple[str, ...]:
        """The nodes of the state from which a node draws; (): it has none that is known.

        known -- nodes
        """
        names = self.states.get(node.name, ())
        return names if all(one in known for one in names) else ()

    def _missing(self, value: FxValue, start: Mapping[str, int]) -> tuple[list[str], list[FxValue]]:
        # the nodes to execute for a value, without their inputs; and the values that they view
        node, wanted = value
        root = self.root(node)
        writers = self.writers.get(root, [])
        if node in start:
            if start[node] > wanted:
                raise NoReference(f"{node}, which was overwritten before it could be recorded")
            between = writers[start[node] : wanted]
            if node != root and not all(self._writes_through(one, node) for one in between):
                raise NoReference(f"{node}, whose memory was written to through another view")
            return between, []
        if self.nodes[node].op == "placeholder":
            raise NoReference(f"the graph's input {node}, whose content was not recorded")
        if node != root:
            return [node], [FxValue(self.tensor(self._views[node]), wanted)]
        return [node, *writers[:wanted]], []

    def _require_own_storage(self, node: FxNode) -> None:
        # as_strided counts from the start of a storage, of which only the input itself was kept
        root = self.nodes[self.root(node.name)]
        if root.op != "placeholder" or not isinstance(root.value, Mapping):
            return
        begins = root.value.get("offset") and len(node.args) > 3
        if node.target.startswith("aten::as_strided") and (begins or not is_dense(root.value)):
            raise NoReference(f"what {node.name} reaches in the storage of {root.name}")

    def _writes_through(self, writer: str, node: str) -> bool:
        # whether all that an operator overwrites is a node, or views of it
        return all(self._is_within(one, node) for one in overwritten(self.nodes[writer]))

    def _is_within(self, view: str, node: str) -> bool:
        view = self.tensor(view)
        while view != node and view in self._views:
            view = self.tensor(self._views[view])
        return view == node

    def _read(self, name: str) -> list[FxValue]:
        node = self.nodes[name]
        if node.op == "get_attr" and node.constant is None and node.graph is None:
            raise NoReference(f"the constant {node.target}")
        if node.op == "call_function":
            resolved(node)
            self._require_own_storage(node)
        at = self.order[name]
        read = references([node.args, node.kwargs])
        base = self._views.get(name)  # only the viewed memory is needed, not its present content
        return [self.value(one, at) for one in read if one != base]


def _is_read(empty: FxNode, nodes: Sequence[FxNode]) -> bool:
    # whether one of some nodes, in their order, may depend on what the memory of another one held
    users = [one for one in nodes if empty.name in references([one.args, one.kwargs])]
    for user in users:
        name = user.target.partition(".")[0]
        others = references([user.args[1:], user.kwargs])
        if name not in _OVERWRITING or empty.name in others:
            return True
        if name.endswith("_"):
            return False
    return not users
