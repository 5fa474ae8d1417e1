"""Judges the gradients of one backward of a call of a graph that Dynamo traced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from tracing.analyze.judge.findings import TracedOff
from tracing.judge.contents import Content, Contents
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.traced.drawn_numbers import GraphDraws
from tracing.judge.traced.judged_results import JudgedResults, refused
from tracing.judge.traced.traced_program import TracedProgram
from tracing.model import Blob, GraphCall, TracedBackward, TracedCall
from tracing.store.graph_file import FxNode, PythonLine

_GRADIENT = "gradient of input "


class JudgedBackward(JudgedResults):
    """The gradients that a backward gives to the inputs of its call, for the gradients of its results.

    The backward is executed with the autocast of the forward, as AOTAutograd compiles it by default.
    """

    def __init__(
        self,
        backward: TracedBackward,
        call: TracedCall,
        graph: int,
        inner: Sequence[GraphCall],
        program: TracedProgram,
        contents: Contents,
        unjudged: Sequence[str],
        draws: Sequence[GraphDraws],
    ) -> None:
        """call -- the call that it is the backward of

        inner -- the calls of compiled graphs that are parts of the backward
        graph, unjudged, draws -- as of `JudgedResults`
        """
        super().__init__(call, graph, program, contents, unjudged, draws)
        self._backward, self._inner = backward, inner
        self._wanted = [i for i in range(len(program.inputs)) if self._has_gradient(i)]

    def _has_gradient(self, position: int) -> bool:
        made = self._contents.of_graph(self._backward.index, position, "output")
        return made is not None or position in self._backward.absent

    def _findings(self) -> Iterator[TracedOff]:
        if self._backward.views:
            raise NoReference("the gradient of a tensor that is no result, as the base of a view")
        if self._lost():
            raise NoReference("the gradient of a result whose content was not recorded")
        if self._changed():
            raise NoReference("a tensor that changed between the call and its backward")
        for i in self._backward.given:
            if i not in self._wanted:
                self._unjudged(f"{_GRADIENT}{i}", "its content, which was not recorded")
        with refused():
            made = self._made()
        off = self._off(made, {f"{_GRADIENT}{i}": self._actual(i) for i in self._wanted})
        yield from sorted(off, key=self._read_at, reverse=True)  # the first ones are next to the cause
        if self._backward.others:
            self._unjudged("a gradient", "a tensor that is no input, as the base of several inputs")

    def _changed(self) -> bool:
        # the program may write to what autograd saved, as Tensor.data, and saved_tensors_hooks replace it
        kept = self._contents.of_calls
        known = kept(range(self._call.index, self._call.stop)) | kept([self._backward.index], "input")
        for one in self._inner:
            if any(self._tensor(blob).any() for blob in kept([one.index], "input") - known):
                return True  # a gradient that does not enter is passed as zeros
            known |= kept([one.index])
        return False

    def _tensor(self, blob: Blob) -> torch.Tensor:
        return self._contents.tensor(Content(blob))

    def _lost(self) -> bool:
        index = self._backward.index
        return any(self._contents.of_graph(index, i, "input") is None for i in self._backward.entered)

    def _made(self) -> dict[str, Any]:
        entered = {}
        for position in range(len(self._program.outputs)):
            content = self._contents.of_graph(self._backward.index, position, "input")
            if content is not None:
                entered[position] = self._contents.tensor(content)
        made = self._program.gradients(
            self._inputs, self._call.overlapping, entered, self._wanted, self._left, self._drawn
        )
        return {f"{_GRADIENT}{i}": one for i, one in zip(self._wanted, made, strict=True)}

    def content(self, name: str) -> Content | None:
        position = int(name.removeprefix(_GRADIENT))
        return self._contents.of_graph(self._backward.index, position, "output")

    def _actual(self, position: int) -> torch.Tensor:
        content = self.content(f"{_GRADIENT}{position}")
        if content is not None:
            return self._contents.tensor(content)
        read = self._contents.of_graph(self._call.index, position, "input")
        assert read is not None  # without it, the graph was not executed
        return torch.zeros_like(self._contents.tensor(read))

    def _read_at(self, off: TracedOff) -> int:
        # the position of the first node that reads an input: an error flows on to the inputs of earlier nodes
        return next(iter(self._program.readers(off.wrong.node)), 0)

    def _node(self, name: str) -> FxNode | None:
        return self._program.inputs[int(name.removeprefix(_GRADIENT))]

    def _lines(self, name: str) -> tuple[PythonLine, ...]:
        # of what reads the input
        graph, node = self._program.graph, self._node(name)
        read = self._program.readers(node.name) if node is not None else []
        return graph.lines_of(graph.nodes[i] for i in read)
