"""Compile each graph up to a stage, from Dynamo to Inductor's code, and execute it by ATen."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch._dynamo.backends.debugging import boxed_nop
from torch._dynamo.backends.registry import lookup_backend
from torch._functorch import config as functorch
from torch._inductor import compile_fx as module
from torch._inductor import config as inductor

from tracing.upstream.contract import require, require_parameters
from tracing.upstream.inductor.compile_steps import StepChoice
from tracing.upstream.patch import Method, patched, replaced
from tracing.upstream.torch.dynamo import forget_compiled

EAGER, AOT, DECOMPOSED = "eager", "aot_eager", "aot_eager_decomp_partition"  # also names of torch's backends
JOINED, POST_GRAD_GRAPH, INDUCTOR = "joint graph", "post-grad graph", "inductor"
GRAPHS = "graphs"  # the part of which each graph is a step


class _Reached(BaseException):
    # a BaseException: Inductor would wrap an Exception

    def __init__(self, graph: Any) -> None:
        super().__init__()
        self.graph = graph


@contextmanager
def graphs_compiled(stage: str, steps: StepChoice) -> Iterator[None]:
    """While active, Inductor's backend compiles each graph up to a stage, and ATen executes the result.

    steps -- decide about each graph, "graph 0". In the last two stages the backward is a separate graph,
             "graph 0 backward". A graph that is left out stays at the joint graph in the last two stages, and
             at Dynamo's graph in the others
    """
    with (
        inductor.patch({"fx_graph_cache": False, "fx_graph_remote_cache": False}),
        functorch.patch({"enable_autograd_cache": False}),
        patched(module, "compile_fx", functools.partial(_staged, stage, steps, itertools.count())),
    ):
        yield


def _staged(stage: str, steps: StepChoice, numbers: Iterator[int], original: Method) -> Method:
    def compile_fx(model: Any, inputs: Any, inner_compile: Any = None, **options: Any) -> Any:
        if inner_compile is not None:  # it calls itself recursively to change its settings
            return original(model, inputs, inner_compile, **options)
        name = f"graph {next(numbers)}"
        own = stage not in (POST_GRAD_GRAPH, INDUCTOR)
        if own and (stage == EAGER or not steps.make(GRAPHS, name)):
            return lookup_backend(EAGER)(model, inputs)
        if stage in (AOT, DECOMPOSED):
            return lookup_backend(stage)(model, inputs)
        return original(model, inputs, functools.partial(_inner, stage, steps, name), **options)

    return compile_fx


def _inner(stage: str, steps: StepChoice, name: str, graph: Any, inputs: Any, **options: Any) -> Any:
    phase = "backward" if options.get("is_backward") else "forward"
    if stage == JOINED or not steps.make(GRAPHS, f"{name} {phase}"):
        return boxed_nop(graph, inputs)
    if stage == INDUCTOR:
        return module.compile_fx_inner(graph, inputs, **options)
    try:
        with replaced(module, "GraphLowering", _reached):
            return module.compile_fx_inner(graph, inputs, **options)
    except _Reached as reached:
        return boxed_nop(reached.graph, inputs)


def _reached(graph: Any, *args: Any, **options: Any) -> NoReturn:
    raise _Reached(graph)


class _Every:
    def make(
        self, part: str, label: str, *, kind: str = "", detail: str = "", nodes: Sequence[str] = ()
    ) -> bool:
        return True

    def open(self, part: str) -> bool:
        return True

    def left_out(self, part: str) -> list[str]:
        return []

    def only(self, part: str) -> list[str] | None:
        return None


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    require_parameters(module.compile_fx, "model_", "inner_compile", "config_patches")
    for stage in (AOT, JOINED, POST_GRAD_GRAPH):
        with graphs_compiled(stage, _Every()):
            forget_compiled()
            one = torch.compile(lambda x: x * 2)(torch.ones(2))
        require(one.tolist() == [2, 2], f"a graph that ATen executes as {stage}")
    forget_compiled()
