"""The graphs that one process of a run compiled, as programs that can be executed."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

from tracing.judge.contents import Contents
from tracing.judge.fx.allowed_tf32 import allowed_tf32
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.operators import is_custom
from tracing.model import CompiledGraph
from tracing.model.first_names import first_names
from tracing.store.graph_file import Schedule, read_graph, read_schedule


class GraphProgram(NamedTuple):
    """A compiled graph."""

    traced: FxProgram  # as Inductor received it
    lowered: FxProgram  # as its passes left it
    schedule: Schedule


class GraphPrograms:
    """The compiled graphs of one process, by their numbers."""

    def __init__(self, process: str, contents: Contents) -> None:
        self._run, self._contents = contents.run, contents
        self.records = {one.id: one for one in self._run.view(process, CompiledGraph, CompiledGraph)}
        self._programs: dict[int, GraphProgram] = {}

    def program(self, graph: int) -> GraphProgram:
        if graph not in self._programs:
            one = self.records[graph]
            tf32 = allowed_tf32(self._run.info.environment, one)
            traced, lowered = (
                FxProgram(read_graph(self._run, blob), self._contents.device, tf32)
                for blob in (one.nodes, one.post_grad)
            )
            self._programs[graph] = GraphProgram(traced, lowered, read_schedule(self._run, one))
        return self._programs[graph]

    def code(self, graph: int) -> str:
        """The Python code that Inductor generated."""
        return self._run.text(self.records[graph].code)

    def is_backward(self, graph: int) -> bool:
        return self.records[graph].phase == "backward"

    def named(self, graphs: Iterable[int]) -> str:
        """Some graphs: "graph 0, 1 (backward)"."""
        numbers = sorted({*graphs})
        names = [f"{one} (backward)" if self.is_backward(one) else f"{one}" for one in numbers]
        return f"graph {first_names(names)}"

    def saved(self, forward: int) -> set[str]:
        """The nodes of a graph whose values it returns for its backward."""
        # AOTAutograd's backward has inputs of the same names
        own = self.records[forward]
        return {
            name
            for one in self.records.values()
            if (own.phase, one.phase, one.compile_id) == ("forward", "backward", own.compile_id)
            for name in self.program(one.id).traced.inputs
        }

    @functools.cached_property
    def of_kernels(self) -> dict[str, int]:
        """The graph of each kernel that Inductor wrote."""
        return {
            call.kernel: graph.id
            for graph in self.records.values()
            for step in read_schedule(self._run, graph).steps
            for call in step.calls
        }

    @functools.cached_property
    def custom_operators(self) -> set[str]:
        """The operators of the program, or of another library, that the graphs call: "mylib::op"."""
        nodes = (node for one in self.records for node in self.program(one).traced.nodes.values())
        return {one.target.partition(".")[0] for one in nodes if is_custom(one)}
