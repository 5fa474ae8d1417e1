"""Records what Inductor compiles outside of a recorded case: graphs, code, kernels with their IR."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import Any

import torch

from tracing.model import CompiledGraph, NotCovered
from tracing.record.graphs.graph_nodes import graph_json, graph_text
from tracing.record.passes.recorder import PassRecorder
from tracing.record.passes.workers import recorded_in_workers
from tracing.store import RunWriter
from tracing.store.graph_file import encoded
from tracing.upstream.inductor.graphs import GraphFacts, compiles_followed


class CompileRecorder:
    """While entered, each graph that Inductor compiles is written to a run, and so is each kernel."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._passes = PassRecorder(writer)
        self._numbers = itertools.count()
        self._exit = ExitStack()
        self._facts: dict[str, Any] = {}  # of the graph that is compiled

    def __enter__(self) -> CompileRecorder:
        self._exit.enter_context(compiles_followed(self))
        self._exit.enter_context(self._passes)
        self._exit.enter_context(recorded_in_workers(self._writer))
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    # ---- tracing.upstream.inductor.graphs.GraphListener

    def traced(self, graph: torch.fx.GraphModule, compile_id: str) -> None:
        """Dynamo's graph is in the run's repro."""

    def made(self, compiled: Any) -> Any:
        return compiled

    def began(self, graph: torch.fx.GraphModule, compile_id: str, backward: bool) -> None:
        blob = self._writer.blob
        self._facts = {
            "id": next(self._numbers),
            "compile_id": compile_id,
            "phase": "backward" if backward else "forward",
            "text": blob(graph_text(graph)),
            "nodes": blob(encoded(graph_json(graph))),
        }

    def lowered(self, graph: torch.fx.GraphModule, code: str, schedule: GraphFacts) -> None:
        blob = self._writer.blob
        self._writer.append(
            CompiledGraph(
                **self._facts,
                post_grad_text=blob(graph_text(graph)),
                post_grad=blob(encoded(graph_json(graph))),
                code=blob(code),
                schedule=blob(encoded(schedule)),
            )
        )

    def failed(self, why: str) -> None:
        self._writer.append(NotCovered(f"the code of a graph that Inductor compiled: {why}", ""))

    def ended(self) -> bytes | None:
        return None
