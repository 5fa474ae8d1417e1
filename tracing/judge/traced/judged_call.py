"""Judges the results of one call of a graph that Dynamo traced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from tracing.analyze.judge.findings import BEFORE_INDUCTOR, SharedResult, TracedOff
from tracing.judge.contents import Content
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.traced.first_difference import COMPARED, FirstDifference, first_difference, received_values
from tracing.judge.traced.judged_results import JudgedResults, as_recorded, refused
from tracing.judge.traced.traced_program import ExecutedGraph
from tracing.model import GraphCall
from tracing.numerics.reference import Reference
from tracing.store.graph_file import FxNode, PythonLine


class JudgedCall(JudgedResults):
    """Its outputs, the inputs that it overwrites, and which of them share memory."""

    def _findings(self) -> Iterator[TracedOff | SharedResult]:
        with refused():
            executed = self._executed()
        made = self._by_name(executed)
        off = self._off(made, self._actual(made))
        yield from sorted(off, key=self._made_at)  # the first ones are next to the cause
        yield from self._shared(executed)

    def _made(self) -> dict[str, Any]:
        return self._by_name(self._executed())

    def _executed(self) -> ExecutedGraph:
        return self._program.run(self._inputs, self._call.overlapping, self._drawn)

    def first_difference(self, wrong: str, inner: GraphCall, received: FxProgram) -> FirstDifference | None:
        """Where Dynamo's graph and the graph that Inductor received part; None: that is not known.

        wrong    -- a node of Dynamo's graph whose value is off
        inner    -- the call of the compiled graph
        received -- this graph, as Inductor received it
        """
        try:
            with as_recorded(self._call, self._contents.device), refused():
                made = Reference(self._values, tf32=self._tf32).expected(0)
                others = received_values(inner, received, self._contents)
                return first_difference(self._program.graph, made, others, wrong)
        except NoReference:
            return None

    def _values(self) -> dict[str, torch.Tensor]:
        values: dict[str, torch.Tensor] = {}
        elements = 0

        def receive(node: FxNode, result: Any) -> None:
            nonlocal elements
            if isinstance(result, torch.Tensor):
                values[node.name] = result.clone()
                elements += result.numel()
                if elements > COMPARED:
                    raise NoReference("more values than are compared")

        self._program.run(self._inputs, self._call.overlapping, self._drawn, receive)
        return values

    def _by_name(self, executed: ExecutedGraph) -> dict[str, Any]:
        outputs = {f"output {i}": one for i, one in enumerate(executed.results)}
        positions = sorted({*executed.changed, *self._left})
        return outputs | {f"input {i} afterwards": executed.inputs[i] for i in positions}

    def _actual(self, made: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        known = {name: self.content(name) for name, own in made.items() if isinstance(own, torch.Tensor)}
        return {name: self._contents.tensor(one) for name, one in known.items() if one is not None}

    def content(self, name: str) -> Content | None:
        side, position = _parts(name)
        if side == "output":
            return self._contents.of_graph(self._call.index, position, "output")
        left = self._contents.of_graph(self._call.index, position, "afterwards")
        # of an input that compiled code does not overwrite, what it read
        return left or self._contents.of_graph(self._call.index, position, "input")

    def _shared(self, executed: ExecutedGraph) -> Iterator[SharedResult]:
        expected = {(one.output, one.side, one.other) for one in executed.shared}
        if not self._program.layouts_known:
            return
        for one in self._call.shared:
            if (one.output, one.side, one.other) in expected:
                continue
            name, other = f"output {one.output}", f"{one.side} {one.other}"
            yield SharedResult(
                self._graph, name, self._node_name(name), other, self._node_name(other), BEFORE_INDUCTOR,
                self._lines(name),
            )  # fmt: skip

    def _made_at(self, off: TracedOff) -> int:
        # the position of the node that makes an output: an error flows on to those of later nodes
        nodes = self._program.graph.nodes
        made = (i for i, one in enumerate(nodes) if one.name == off.wrong.node and one.op != "placeholder")
        return next(made, len(nodes))

    def _node(self, name: str) -> FxNode | None:
        side, position = _parts(name)
        nodes = self._program.inputs if side == "input" else self._program.output_nodes
        return nodes[position] if position < len(nodes) else None

    def _lines(self, name: str) -> tuple[PythonLine, ...]:
        node = self._node(name)
        return self.lines_of(node) if node is not None else ()

    def lines_of(self, node: FxNode) -> tuple[PythonLine, ...]:
        """The line of the program that a node of Dynamo's graph comes from, if it is known."""
        return self._program.graph.lines_of([node])


def _parts(name: str) -> tuple[str, int]:
    side, position, *_ = name.split(" ")
    return side, int(position)
