"""Records the graphs that Inductor compiles, and the launches of each call of a graph.

The records of a graph are attached to it, also in Inductor's caches, and written to the run at its first
call. A graph from a cache that another program filled lacks them: it is not covered.
"""

from __future__ import annotations

import inspect
import itertools
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
import torch

from tracing.errors import message
from tracing.model import CompiledGraph, GraphCall, SharedBytes, TracedGraph
from tracing.record.graphs.call_tensors import CallTensors
from tracing.record.graphs.graph_nodes import graph_json, graph_text, tensor_attributes
from tracing.record.graphs.shared_memory import passed_inputs, shared_memory
from tracing.record.graphs.traced_calls import TracedCalls
from tracing.record.outputs import OutputKeeper
from tracing.record.recording import Recording
from tracing.store.graph_file import FxGraph, GraphFile, Schedule
from tracing.upstream.inductor.graphs import GraphFacts, around_graphs, attached, compiles_followed
from tracing.upstream.patch import Method
from tracing.upstream.torch.cuda_graphs import is_capturing
from tracing.upstream.torch.float32_precision import float32_precision, tf32_products

_UNCACHED = "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1"
_UNREADABLE = b""  # attached to a graph of an unknown form
_encode = msgspec.json.encode


class _Compiling(threading.local):
    facts: dict[str, Any] | None = None


class _Tracing(threading.local):
    graph: int | None = None  # which Inductor compiles now; None: it could not be read
    attributes: Sequence[weakref.ref[torch.Tensor]] = ()  # tensors that it reads, other than its inputs


class GraphRecorder:
    """While installed, records graphs at their first call, and each of their calls."""

    def __init__(self, recording: Recording, keeper: OutputKeeper | None) -> None:
        """keeper -- keeps the inputs and outputs of each call; None: they are not kept"""
        self._recording = recording
        self._tensors = CallTensors(keeper) if keeper is not None else None
        self._traced = _Tracing()
        self._compiling = _Compiling()
        self._calls, self._graphs = itertools.count(), itertools.count()
        self._wrapping = TracedCalls(recording, self._tensors, self._calls) if self._tensors else None
        self._failed = False  # True: a graph could not be read, and the run says why
        self._known: dict[int, tuple[Any, _Known | None]] = {}  # by id of the graph, which is held

    @contextmanager
    def installed(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(compiles_followed(self))
            stack.enter_context(around_graphs(self._around_call))
            if self._wrapping is not None:
                stack.enter_context(self._wrapping.installed())
            yield

    # ---- compiles

    def traced(self, graph: torch.fx.GraphModule, compile_id: str) -> None:
        writer = self._recording.writer
        with self._survived():
            self._traced.graph = None
            attributes = tensor_attributes(graph)
            text, nodes = writer.blob(graph_text(graph)), writer.blob(_encode(graph_json(graph, attributes)))
            number = next(self._graphs)
            writer.append(TracedGraph(compile_id, text, nodes, number))
            self._traced.graph = number
            self._traced.attributes = [weakref.ref(one) for one in attributes.values()]

    def made(self, compiled: Any) -> Any:
        graph = self._traced.graph
        if self._wrapping is None or graph is None or not inspect.isfunction(compiled):
            return compiled
        return self._wrapping.wrapped(compiled, graph, self._traced.attributes)

    def began(self, graph: torch.fx.GraphModule, compile_id: str, backward: bool) -> None:
        with self._survived():
            self._compiling.facts = {
                "compile_id": compile_id,
                "backward": backward,
                "text": graph_text(graph),
                "nodes": graph_json(graph),
            }

    def lowered(self, graph: torch.fx.GraphModule, code: str, schedule: GraphFacts) -> None:
        if self._compiling.facts is not None:
            more = {"post_grad_text": graph_text(graph), "post_grad": graph_json(graph)}
            self._compiling.facts |= {**more, "code": code, "schedule": schedule}

    def failed(self, why: str) -> None:
        self._compiling.facts = None
        self._failed = True
        self._recording.catalogue.not_covered(f"the code of a graph that Inductor compiled: {why}", "")

    def ended(self) -> bytes | None:
        facts, self._compiling.facts = self._compiling.facts, None
        return _encode(facts) if facts is not None and "code" in facts else _UNREADABLE

    @contextmanager
    def _survived(self) -> Iterator[None]:
        # a graph of an unknown form must not make the program's compile fail
        try:
            yield
        except Exception as error:
            first, *_ = message(error).split("\n")
            self.failed(f"{type(error).__name__}: {first}")

    # ---- calls

    def _around_call(self, original: Method) -> Method:
        def called(graph: Any, inputs: Any) -> Any:
            with self._recording.lock:
                index, started = next(self._calls), self._recording.launches
                known = self._graph(graph) if not self._recording.flight.paused else None
            if known is None:
                return original(graph, inputs)
            numbers = {i: one for i, one in enumerate(inputs) if isinstance(one, (int, float))}
            generators = _generators(inputs)
            if self._tensors is None:
                results, shared = original(graph, inputs), tuple[SharedBytes, ...]()
            else:
                results, shared = self._kept(original, graph, inputs, index, known, self._tensors)
            with self._recording.lock:
                stop, thread = self._recording.launches, self._recording.thread.number
                call = GraphCall(index, known.id, (started, stop), thread, numbers, shared, generators)
                self._recording.writer.append(call)
            return results

        return called

    def _kept(
        self, original: Method, graph: Any, inputs: Any, index: int, known: _Known, tensors: CallTensors
    ) -> tuple[Any, tuple[SharedBytes, ...]]:
        tensors.keep(index, "input", dict(enumerate(inputs)))
        # generated code clears the list to free memory early
        overwritten = {i: inputs[i] for i in known.overwritten}
        passed = passed_inputs(inputs)
        results = original(graph, inputs)
        shared = shared_memory(results, passed)
        tensors.keep(index, "output", dict(enumerate(results)))
        tensors.keep(index, "afterwards", overwritten)
        if self._wrapping is not None:
            self._wrapping.overwrites(overwritten.values())
        return results, shared

    def _graph(self, graph: Any) -> _Known | None:
        if id(graph) not in self._known:
            self._known[id(graph)] = graph, self._recorded(attached(graph))
        return self._known[id(graph)][1]

    def _recorded(self, content: bytes | None) -> _Known | None:
        if content is None:
            what = "graphs of a compile from before the recording, or from Inductor's cache"
            self._recording.catalogue.not_covered(what, _UNCACHED)
            return None
        if content == _UNREADABLE:
            if not self._failed:
                what = "graphs whose code could not be read when they were compiled"
                self._recording.catalogue.not_covered(what, _UNCACHED)
            return None
        facts = msgspec.json.decode(content, type=GraphFile)
        schedule = msgspec.json.decode(facts.schedule, type=Schedule)
        blob = self._recording.writer.blob
        graph = CompiledGraph(
            sum(known is not None for _, known in self._known.values()),
            facts.compile_id,
            "backward" if facts.backward else "forward",
            text=blob(facts.text),
            nodes=blob(bytes(facts.nodes)),
            post_grad_text=blob(facts.post_grad_text),
            post_grad=blob(bytes(facts.post_grad)),
            code=blob(facts.code),
            schedule=blob(bytes(facts.schedule)),
            precision=float32_precision(),
            default_dtype=str(torch.get_default_dtype()).removeprefix("torch."),
            tf32=tf32_products(),
        )
        self._recording.writer.append(graph)
        return _Known(graph.id, _overwritten(schedule, msgspec.json.decode(facts.nodes, type=FxGraph)))


class _Known(msgspec.Struct, frozen=True):
    id: int
    overwritten: tuple[int, ...]  # positions of inputs


def _generators(inputs: Sequence[Any]) -> dict[int, tuple[int, int]]:
    # from which the operators of a checkpoint draw; one on the CPU has no offset
    own = {i: one for i, one in enumerate(inputs) if isinstance(one, torch.Generator)}
    own = {i: one for i, one in own.items() if one.device.type == "cuda"}
    if not own or is_capturing():  # a generator tells nothing while a CUDA graph is captured
        return {}
    return {i: (one.initial_seed(), one.get_offset()) for i, one in own.items()}


def _overwritten(schedule: Schedule, traced: FxGraph) -> tuple[int, ...]:
    # by the generated code, or by the graph that Inductor received: its passes may lose a write
    written = {schedule.location(name) for name in schedule.overwrites}
    by_code = {i for i, name in enumerate(schedule.inputs) if name in written}
    inputs = {node.name: i for i, node in enumerate(one for one in traced.nodes if one.op == "placeholder")}
    copied = (node.args[0] for node in traced.nodes if node.target == "aten::copy_")
    by_graph = {inputs.get(str(one.get("node"))) for one in copied if isinstance(one, Mapping)}
    return tuple(sorted(by_code | {i for i in by_graph if i is not None}))
