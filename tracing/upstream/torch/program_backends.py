"""The backends of torch.compile that a program brings, which compile Dynamo's graphs in their own manner."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch._dynamo.backends.registry import lookup_backend
from torch._dynamo.output_graph import OutputGraph
from torch._inductor import compile_fx as module

from tracing.upstream.contract import require
from tracing.upstream.inductor.compile_steps import StepChoice
from tracing.upstream.patch import Method, patched, replaced
from tracing.upstream.python_functions import name_outside_torch, python_function
from tracing.upstream.torch.dynamo import forget_compiled

BACKENDS = "backends of the program"  # the part of which each graph that one of them compiles is a step


@contextmanager
def backends_asked(steps: StepChoice) -> Iterator[None]:
    """While active, only Inductor compiles a graph whose backend is left out.

    steps -- decide about each graph that a backend of the program compiles, "mine (train.py:12)"
    """
    with patched(OutputGraph, "_call_user_compiler", functools.partial(_asked, steps)):
        yield


def _asked(steps: StepChoice, original: Method) -> Method:
    def call(graph: Any, *args: Any, **kwargs: Any) -> Any:
        given = graph.compiler_fn
        function = _function(given)
        label = name_outside_torch(function)
        if not label or steps.make(BACKENDS, label):
            with _current_compile_fx(function):
                return original(graph, *args, **kwargs)
        graph.compiler_fn = lookup_backend("inductor")
        try:
            return original(graph, *args, **kwargs)
        finally:
            graph.compiler_fn = given

    return call


def _function(backend: Any) -> Any:
    # the function of Python that a backend is, or calls
    for wrapped in ("_torchdynamo_orig_backend", "compiler_fn"):
        backend = getattr(backend, wrapped, backend)
    return python_function(backend)


def _current_compile_fx(function: Any) -> Any:
    # a backend that has imported the function by name calls what has replaced it since
    names = getattr(function, "__globals__", {})
    first = inspect.unwrap(module.compile_fx)
    own = next((name for name, value in list(names.items()) if value is first), None)
    return nullcontext() if own is None else replaced(names, own, module.compile_fx)


class _None:
    def make(self, part: str, label: str, **facts: Any) -> bool:
        return False


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    seen: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        seen.append("called")
        return graph.forward

    steps: Any = _None()
    for context in (nullcontext(), backends_asked(steps)):
        with context:
            forget_compiled()
            result = torch.compile(lambda x: x * 2, backend=backend)(torch.ones(2))
        require(result.tolist() == [2, 2], "a compiled function")
    forget_compiled()
    require(seen == ["called"], "a backend that is left out")
