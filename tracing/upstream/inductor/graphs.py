"""Inductor's graphs: before and after its passes, the schedule, and the generated code.

A schedule is a list of steps in the order of the generated code. A step computes some buffers from others, by
one kernel, by an operator of a library, or by nothing at all (views). A buffer that overwrites another one
has a name of its own, so that a name stands for one content: a step reads and writes names.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Protocol

import torch
from torch._inductor import compile_fx
from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.compile_fx import _InProcessFxCompile
from torch._inductor.dependencies import WeakDep
from torch._inductor.graph import GraphLowering, SubgraphLowering
from torch._inductor.ir import MultiOutput
from torch._inductor.output_code import CompiledFxGraph
from torch._inductor.scheduler import Scheduler

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.inductor.code import around_graphs
from tracing.upstream.patch import Method, Wrapper, patched
from tracing.upstream.torch.dynamo import compile_id

__all__ = ["GraphListener", "around_graphs", "attach", "attached", "compiles_followed"]

_ATTACHED = "tracing_graph"  # of a CompiledFxGraph, which Inductor's caches store with all its attributes
GraphFacts = Mapping[str, Any]


class GraphListener(Protocol):
    """Receives the graphs of one compile at a time, on the thread that compiles."""

    def traced(self, graph: torch.fx.GraphModule, compile_id: str) -> None:
        """Dynamo gives a graph to Inductor."""

    def made(self, compiled: Any) -> Any:
        """Inductor has compiled that graph; returns the callable that Dynamo gets, as a wrapper of it."""

    def began(self, graph: torch.fx.GraphModule, compile_id: str, backward: bool) -> None:
        """Inductor begins to compile a graph of operators."""

    def lowered(self, graph: Any, code: str, schedule: GraphFacts) -> None:
        """Its passes have transformed the graph, and its code is generated."""

    def failed(self, why: str) -> None:
        """The graph, or its schedule, has an unknown form."""

    def ended(self) -> bytes | None:
        """It is compiled; the returned bytes are stored with it, also in Inductor's caches."""


class _Compile(threading.local):
    # of one listener: recordings may be nested
    depth = 0
    steps: list[dict[str, Any]] | None = None  # of the graph whose code is generated
    unfinished: int = 0  # the first step that no kernel call covers
    extern: bool = False
    failure: str = ""  # why the schedule is not known


@contextmanager
def compiles_followed(listener: GraphListener) -> Iterator[None]:
    """While active, `listener` receives what Inductor compiles."""
    state = _Compile()
    with ExitStack() as stack:
        stack.enter_context(patched(compile_fx, "compile_fx", _tracing(state, listener)))
        stack.enter_context(patched(_InProcessFxCompile, "codegen_and_compile", _compiling(listener)))
        stack.enter_context(patched(GraphLowering, "codegen", _lowering(state, listener)))
        for owner, name, wrapper in (
            (GraphLowering, "codegen_subgraph", _in_subgraph),
            (Scheduler, "enter_context", _stepping),
            (Scheduler, "codegen_extern_call", _calling_library),
            (PythonWrapperCodegen, "generate_kernel_call", _calling_kernel),
        ):
            stack.enter_context(patched(owner, name, partial(wrapper, state)))
        yield


def attach(compiled: Any, content: bytes) -> None:
    """Store bytes with a compiled graph."""
    if isinstance(compiled, CompiledFxGraph):
        setattr(compiled, _ATTACHED, content)


def attached(compiled: CompiledFxGraph) -> bytes | None:
    """The bytes that were stored with a compiled graph, by this process or the one that filled the cache."""
    return vars(compiled).get(_ATTACHED)


def _tracing(state: _Compile, listener: GraphListener) -> Wrapper:
    def wrapper(original: Method) -> Method:
        def compile_graph(model: Any, *args: Any, **kwargs: Any) -> Any:
            outermost = not state.depth and isinstance(model, torch.fx.GraphModule)
            if outermost:
                listener.traced(model, compile_id())
            state.depth += 1  # it calls itself recursively with changed settings
            try:
                compiled = original(model, *args, **kwargs)
            finally:
                state.depth -= 1
            return listener.made(compiled) if outermost else compiled

        return compile_graph

    return wrapper


def _compiling(listener: GraphListener) -> Wrapper:
    def wrapper(original: Method) -> Method:
        def codegen_and_compile(
            self: Any, graph: Any, inputs: Any, inputs_to_check: Any, graph_kwargs: Any
        ) -> Any:
            listener.began(graph, compile_id(), bool(graph_kwargs.get("is_backward")))
            compiled = original(self, graph, inputs, inputs_to_check, graph_kwargs)
            content = listener.ended()
            if content is not None:
                attach(compiled, content)
            return compiled

        return codegen_and_compile

    return wrapper


def _lowering(state: _Compile, listener: GraphListener) -> Wrapper:
    def wrapper(original: Method) -> Method:
        def codegen(self: GraphLowering) -> Any:
            if isinstance(self, SubgraphLowering):  # a branch of cond, the body of while_loop
                return _in_subgraph(state, original)(self)
            state.steps, state.unfinished, state.failure = [], 0, ""
            try:
                result = original(self)
                _receive(state, listener, self, result)
            finally:
                state.steps = None
            return result

        return codegen

    return wrapper


def _in_subgraph(state: _Compile, original: Method) -> Method:
    # its steps are not those of the graph that calls it: how often they are executed, only the program knows
    def codegen(self: GraphLowering, *args: Any, **kwargs: Any) -> Any:
        outer = state.steps, state.extern
        state.steps = None
        try:
            return original(self, *args, **kwargs)
        finally:
            state.steps, state.extern = outer

    return codegen


def _receive(state: _Compile, listener: GraphListener, graph: GraphLowering, result: Any) -> None:
    # an unknown form must not make the program's compile fail
    try:
        if state.steps is not None:
            listener.lowered(graph.module, result[0].value, _schedule(graph, state.steps))
    except Exception as error:
        state.failure = _reason(error)
    if state.failure:
        listener.failed(state.failure)


def _reason(error: Exception) -> str:
    first, *_ = str(error).split("\n")
    return f"{type(error).__name__}: {first}"


# ---- the schedule, while code is generated


def _stepping(state: _Compile, original: Method) -> Method:
    def enter_context(self: Scheduler, node: Any) -> Any:
        if state.steps is not None:
            try:
                state.steps.append(_step(node))
            except Exception as error:
                state.steps, state.failure = None, _reason(error)
        return original(self, node)

    return enter_context


def _step(node: Any) -> dict[str, Any]:
    own = [*node.get_buffer_names()]
    reads = {dep.name for dep in node.read_writes.reads if not isinstance(dep, WeakDep)}
    parts = [part.node for part in node.get_nodes()]
    origins = {one.name: None for part in parts for one in _origins(part)}
    kind = "library" if node.is_extern() else "kernel" if node.get_device() is not None else "none"
    if type(node).__name__ == "NopKernelSchedulerNode":
        kind = "none"
    return {
        "kind": kind,
        "buffers": own,
        "reads": sorted(reads - {*own}),
        "nodes": [*origins],
        "calls": [],
        "code": type(getattr(node, "node", None)).__name__ if node.is_extern() else "",
    }


def _calling_library(state: _Compile, original: Method) -> Method:
    def codegen_extern_call(self: Scheduler, node: Any) -> Any:
        state.extern = True
        try:
            return original(self, node)
        finally:
            state.extern = False
            if state.steps:
                state.unfinished = len(state.steps)

    return codegen_extern_call


def _calling_kernel(state: _Compile, original: Method) -> Method:
    def generate_kernel_call(self: Any, kernel_name: str, call_args: Any, *args: Any, **kwargs: Any) -> Any:
        steps = state.steps
        if steps:
            call = {"kernel": kernel_name, "arguments": [_text(one) for one in call_args]}
            own = kwargs.get("triton", True) and steps[-1]["kind"] == "kernel"  # generated within its step
            if state.extern or own:
                steps[-1]["calls"].append(call)
            else:
                _cover(state, steps, call)
        return original(self, kernel_name, call_args, *args, **kwargs)

    return generate_kernel_call


def _cover(state: _Compile, steps: list[dict[str, Any]], call: dict[str, Any]) -> None:
    # C++ kernels are called when the next step is not part of them: one call may cover several steps
    pending = [one for one in steps[state.unfinished :] if one["kind"] == "kernel" and not one["calls"]]
    if not pending:
        covered = [one for one in steps if one["kind"] == "kernel"]
        pending = covered[-1:]
    if pending:
        first, *others = pending
        for other in others:
            first["buffers"] += other["buffers"]
            first["reads"] = sorted({*first["reads"], *other["reads"]} - {*first["buffers"]})
            first["nodes"] = [*dict.fromkeys([*first["nodes"], *other["nodes"]])]
            steps.remove(other)
        first["calls"].append(call)


def _text(argument: Any) -> str:
    return argument if isinstance(argument, str) else str(argument)


def _schedule(graph: GraphLowering, steps: list[dict[str, Any]]) -> GraphFacts:
    scheduler = graph.scheduler
    return {
        "inputs": [*graph.graph_input_names],
        "outputs": [_text(one) for one in graph.get_output_names()],
        "steps": steps,
        "buffers": {name: _buffer(one) for name, one in graph.name_to_buffer.items()},
        "overwrites": _overwrites(scheduler),
        "locations": dict(scheduler.mutation_real_name),
        "removed": sorted(graph.removed_buffers),
    }


def _overwrites(scheduler: Scheduler) -> dict[str, list[str]]:
    return {
        name: [*one.get_mutations()] for name, one in scheduler.name_to_buf.items() if one.get_mutations()
    }


def _buffer(buffer: Any) -> dict[str, Any]:
    node = buffer.get_origin_node() if hasattr(buffer, "get_origin_node") else None
    indices = buffer.indices if isinstance(buffer, MultiOutput) else ()  # those of index_put are others
    return {
        "node": node.name if node is not None else "",
        "origins": [one.name for one in _origins(buffer)],
        "dtype": str(buffer.get_dtype()).removeprefix("torch.") if _is_tensor(buffer) else "",
        "parts": [int(index) for _, index in indices],
        "class": type(buffer).__name__,
    }


def _origins(part: Any) -> Iterable[Any]:
    # a buffer that a user's kernel overwrites has neither a layout nor origins
    origins: Iterable[Any] = part.get_origins() if hasattr(part, "get_origins") else ()
    return origins


def _is_tensor(buffer: Any) -> bool:
    return hasattr(buffer, "has_tensor_output") and bool(buffer.has_tensor_output())


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require_parameters(compile_fx.compile_fx, "model_", "example_inputs_")
    require_methods(_InProcessFxCompile, "codegen_and_compile")
    require_methods(GraphLowering, "codegen", "codegen_subgraph")
    require_methods(Scheduler, "enter_context", "codegen_extern_call")
    require_parameters(PythonWrapperCodegen.generate_kernel_call, "kernel_name", "call_args", "triton")
    require_methods(GraphLowering, "get_output_names")
    require(isinstance(WeakDep, type), "dependencies that are no reads")
    require("indices" in MultiOutput.__init__.__code__.co_varnames, "which part of a tuple a buffer is")
    require(not hasattr(CompiledFxGraph, "__slots__"), "compiled graphs that take attributes")
