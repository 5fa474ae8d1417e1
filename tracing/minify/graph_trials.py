"""Execute one candidate of a search in this process; the result consists of JSON values."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch.fx import Node

from tracing.analyze.minify.graph_edit import GraphEdit, GraphNode
from tracing.analyze.minify.trial import ScriptForm, Trial
from tracing.backend.node_values import user_line
from tracing.minify.captured_graph import CapturedGraph, captured_graphs
from tracing.minify.kernel_call import kernel_call, kernel_name
from tracing.minify.predicate import GraphPredicate, error_text
from tracing.minify.script import write_script
from tracing.minify.small_graph import SmallGraph, is_literal, small_graph
from tracing.model import Case
from tracing.program.experiment import Experiment
from tracing.upstream.inductor.user_kernels import launched_name
from tracing.upstream.torch.custom_operators import custom_operator


class GraphTrials:
    """The captured graphs of one case, and the predicate."""

    def __init__(self, experiment: Experiment, predicate: GraphPredicate) -> None:
        """Capture the graphs: the case runs once, in eager. Raises what it raises."""
        self._experiment, self.predicate = experiment, predicate
        with experiment.device.active():
            self.graphs: Sequence[CapturedGraph] = captured_graphs(experiment)

    def whole(self, graph: int) -> GraphEdit:
        """The edit that changes nothing in a graph."""
        return GraphEdit(graph, tuple(node.name for node in self.graphs[graph].calls))

    def nodes(self, graph: int) -> list[GraphNode]:
        """The nodes of a graph that may be left out."""
        return self.graphs[graph].nodes()

    def small(self, edit: GraphEdit) -> SmallGraph:
        """The graph of an edit."""
        return small_graph(self.graphs[edit.graph], edit)

    @property
    def name(self) -> str:
        """The name of the case, as a folder's."""
        return self._experiment.case.name

    def lines(self, graph: int) -> dict[str, str]:
        """The user's line of each node that has one: "model.py:12: return x.sin()"."""
        lines = {node.name: ": ".join(filter(None, user_line(node))) for node in self.graphs[graph].calls}
        return {name: line for name, line in lines.items() if line}

    def hand_written(self, graph: int) -> list[str]:
        """The kernels and the operators of the program that a graph calls."""
        return list(dict.fromkeys(filter(None, map(_hand_written, self.graphs[graph].calls))))

    @property
    def virtual(self) -> bool:
        """True without a GPU."""
        return self._experiment.device.virtual

    def identity(self) -> str:
        """A digest of the graphs and of the values of their inputs."""
        made = hashlib.blake2b(digest_size=16)
        for graph in self.graphs:
            made.update(graph.module.code.encode())
            for name, value in sorted(graph.compiling.items()):
                case = self._experiment.case.path  # has the objects that no text can spell
                made.update(f"{name}={value!r}".encode() if is_literal(value) else case.read_bytes())
            for one in graph.inputs():  # memory that is not initialised differs from process to process
                made.update(repr(one).encode())
                made.update(graph.values.content(one.storage, 0).cpu().numpy().tobytes())
        return made.hexdigest()

    def described(self, edit: GraphEdit) -> dict[str, Any]:
        """The fields of a Trial that describe the executed graph."""
        return _described(self.small(edit))

    def execute(self, edit: GraphEdit) -> dict[str, Any]:
        """The fields of a Trial."""
        started = time.perf_counter()
        small = self.small(edit)
        with self._experiment.device.active():
            try:
                answer = self.predicate.ask(small)
            except (Exception, SystemExit) as error:
                answer = {"kind": "no answer", "text": f"it cannot be executed: {error_text(error)}"}
        return {**_described(small), **answer, "seconds": time.perf_counter() - started}

    def write(self, edit: GraphEdit, trial: Trial, path: Path, form: ScriptForm) -> list[str]:
        """Write the script of a failing candidate, and its data; returns the names that the script lacks."""
        small = self.small(edit)
        with self._experiment.device.active():
            return write_script(small, self.predicate, trial, path, form, _spelled(self._experiment.case))


def _spelled(case: Case) -> str:
    # as on a command line, in any folder
    options = case.name[len(case.path.stem) + 1 :]
    return f"{case.path}:{options}" if options else str(case.path)


def _hand_written(node: Node) -> str | None:
    call = kernel_call(node.target)
    return kernel_name(call) if call else launched_name(node) or custom_operator(node.target)


def _described(small: SmallGraph) -> dict[str, Any]:
    inputs = [
        {
            "name": name,
            "dtype": str(one.dtype).removeprefix("torch."),
            "shape": list(one.shape),
            "stride": list(one.stride),
            "grad": one.grad,
            "shares": small.inputs.shared(name),
        }
        for name, one in small.inputs.stored.items()
    ]
    return {
        "nodes": small.nodes,
        "code": small.module.code,
        "inputs": inputs,
        "returned": list(small.droppable),
        "numbers": small.inputs.numbers,
    }
