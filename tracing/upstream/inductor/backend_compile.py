"""Building blocks of a torch.compile backend: AOTAutograd, Inductor, and errors that Dynamo passes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeAlias

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import ShortenTraceback
from torch._functorch import config as functorch
from torch._inductor import compile_fx as inductor
from torch._inductor.compile_fx import compile_fx_inner
from torch._subclasses.fake_tensor import unset_fake_temporarily

from tracing.upstream.contract import require, require_parameters

Part: TypeAlias = Literal["forward", "backward", "inference"]
GraphCompiler: TypeAlias = Callable[[torch.fx.GraphModule, Part], Callable[..., Any]]


_FORWARD = "forward"  # in the meta of a backward graph: the nodes of its forward that outlive it


class BackendError(ShortenTraceback):
    """An error that reaches the user unchanged; Dynamo wraps others in BackendCompilerFailed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, first_useful_frame=None)


def real_tensors() -> AbstractContextManager[object]:
    """While active, a backend that AOTAutograd calls may read the elements of a graph's constants."""
    return unset_fake_temporarily()


def aot_compiled(graph: torch.fx.GraphModule, inputs: Sequence[Any], compiler: GraphCompiler) -> Any:
    """Compile Dynamo's graph with AOTAutograd; returns the compiled function.

    compiler -- is called with each ATen graph, the backward's included, before the first of them is executed
                and returns a function of a list of inputs, which it may clear
    """

    pair = _GraphPair()

    def part(kind: Part) -> Callable[..., Any]:
        def compiled(aten: torch.fx.GraphModule, _: Any) -> Any:
            pair.add(aten, kind)
            function = compiler(aten, kind)
            function._boxed_call = True  # type: ignore[attr-defined]  # AOTAutograd passes one list
            return function

        return compiled

    backend = aot_autograd(
        fw_compiler=part("forward"), bw_compiler=part("backward"), inference_compiler=part("inference")
    )
    with functorch.patch({"force_non_lazy_backward_lowering": True, "enable_autograd_cache": False}):
        return backend(graph, inputs)


def inductor_compiled(
    graph: torch.fx.GraphModule,
    inputs: Sequence[Any],
    around: Callable[[torch.fx.GraphModule, Part], AbstractContextManager[object]],
) -> Any:
    """Compile Dynamo's graph with AOTAutograd and Inductor; returns the compiled function.

    around -- returns a context for the lowering of each ATen graph; that of the backward is lowered at its
              first call
    """

    pair = _GraphPair()

    def inner(aten: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
        part: Part = "forward"
        if options.get("is_backward"):
            part = "backward"
        elif options.get("is_inference"):
            part = "inference"
        pair.add(aten, part)
        with around(aten, part):
            aten.meta.pop(_FORWARD, None)  # cyclic: Inductor pickles a graph for the key of its cache
            return compile_fx_inner(aten, inputs, **options)

    # AOTAutograd would not check a graph from its cache
    with functorch.patch({"enable_autograd_cache": False}):
        return inductor.compile_fx(graph, inputs, inner_compile=inner)  # type: ignore[arg-type, unused-ignore]


class _GraphPair:
    """The forward and the backward of one of Dynamo's graphs."""

    def __init__(self) -> None:
        self._forward: Sequence[torch.fx.Node] = ()

    def add(self, aten: torch.fx.GraphModule, part: Part) -> None:
        if part == "forward":
            (*_, output) = aten.graph.nodes
            self._forward = [*aten.graph.find_nodes(op="placeholder"), *output.all_input_nodes]
        elif part == "backward":
            aten.meta[_FORWARD] = self._forward


def forward_nodes(backward: torch.fx.Graph) -> Sequence[torch.fx.Node]:
    """The inputs and results of the forward of a backward graph; empty: it is no backward, or not known.

    Those that the forward saves for the backward have the names of the backward's inputs.
    """
    module = backward.owning_module
    return () if module is None else module.meta.get(_FORWARD, ())


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    require_parameters(inductor.compile_fx, "model_", "example_inputs_", "inner_compile")
    parts: list[str] = []
    saved: set[str] = set()

    def run(aten: torch.fx.GraphModule, part: Part) -> Callable[..., Any]:
        parts.append(part)
        inputs = {node.name for node in aten.graph.find_nodes(op="placeholder")}
        saved.update(inputs & {node.name for node in forward_nodes(aten.graph)})
        return lambda inputs: aten(*inputs)

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        return aot_compiled(graph, inputs, run)

    torch.compile(lambda x: x.sin(), backend=backend)(torch.ones(2, requires_grad=True))
    torch.compile(lambda x: x.cos(), backend=backend)(torch.ones(2))
    require(sorted(parts) == ["backward", "forward", "inference"], "the graphs of AOTAutograd")
    require(len(saved) == 1, "the names of what a forward saves for its backward")

    def refuse(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        raise BackendError("refused")

    try:
        torch.compile(lambda x: x.tan(), backend=refuse)(torch.ones(2))
    except Exception as error:
        require(type(error) is BackendError, "an error of a backend that Dynamo passes on")
    torch.compiler.reset()
