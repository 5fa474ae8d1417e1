"""The graphs that Dynamo gives to Inductor, after each of Inductor's graph passes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, TypeAlias

import torch
from torch._inductor import compile_fx
from torch.fx.passes import graph_transform_observer
from torch.fx.passes.graph_transform_observer import GraphTransformObserver

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.patch import Method, Wrapper, patched
from tracing.upstream.python_functions import name_outside_torch
from tracing.upstream.torch.dynamo import compile_id

__all__ = ["PARTS", "GraphSeen", "applied_pass", "graph_passes_followed"]

# part of the graph passes -> the function of Inductor that runs them; its first argument is the graph
PARTS = {
    "pre-grad": "_recursive_pre_grad_passes",
    "joint": "_recursive_joint_graph_passes",
    "post-grad": "_recursive_post_grad_passes",
}
GraphSeen: TypeAlias = Callable[[str, int, str, str, str, torch.fx.GraphModule], None]
_APPLY = ("apply_graph_pass", "apply_gm_pass")  # methods of torch's observer that call a pass


class _Current(threading.local):
    part = ""
    number = 0
    code = ""
    graph: Any = None  # whose passes run
    inside = False  # these are passes of a graph inside of it


@contextmanager
def graph_passes_followed(seen: GraphSeen) -> Iterator[None]:
    """While active, call seen(compile_id, number, part, name, code, graph) after each pass of a graph.

    compile_id -- Dynamo's number of a frame and its compile: "0/0"
    number     -- counts the graphs of one compile and one part: forward is 0, backward 1
    name       -- of the pass; "": the graph is as the first pass of the part receives it; "end": as the last
                  leaves it, which includes passes that torch's observer does not see
    code       -- of a pass outside of torch: "mine (train.py:12)"; else ""

    After a pass of a graph inside of another one, as a branch of torch.cond, `graph` is the outermost one.
    Graphs from Inductor's caches are not observed: they are not compiled.
    """
    current, numbers = _Current(), Counter[tuple[str, str]]()
    with ExitStack() as stack:
        for part, function in PARTS.items():
            stack.enter_context(patched(compile_fx, function, _around(part, current, numbers, seen)))
        for method in _APPLY:
            stack.enter_context(patched(GraphTransformObserver, method, _around_pass(current)))
        stack.enter_context(patched(GraphTransformObserver, "__exit__", _after_pass(current, seen)))
        yield


def applied_pass(frame: FrameType) -> tuple[str, str] | None:
    """The name of the graph pass that a frame calls, and its code as of `graph_passes_followed`."""
    code = frame.f_code
    if code.co_filename != graph_transform_observer.__file__ or code.co_name not in _APPLY:
        return None
    return frame.f_locals["self"].passname, name_outside_torch(frame.f_locals["pass_fn"])


def _around(part: str, current: _Current, numbers: Counter[tuple[str, str]], seen: GraphSeen) -> Wrapper:
    def wrapper(original: Method) -> Method:
        def run(graph: Any, *args: Any, **options: Any) -> Any:
            if current.part:
                outer, current.inside = current.inside, True
                try:
                    return original(graph, *args, **options)
                finally:
                    current.inside = outer
            key = (compile_id(), part)
            current.part, current.number, current.graph = part, numbers[key], graph
            numbers[key] += 1
            seen(key[0], current.number, part, "", "", graph)
            try:
                result = original(graph, *args, **options)
            finally:
                current.part, current.graph = "", None
            left = result if isinstance(result, torch.fx.GraphModule) else graph
            seen(key[0], numbers[key] - 1, part, "end", "", left)
            return result

        return run

    return wrapper


def _around_pass(current: _Current) -> Wrapper:
    def wrapper(original: Method) -> Method:
        def apply(self: Any, pass_fn: Any, *args: Any, **options: Any) -> Any:
            before, current.code = current.code, name_outside_torch(pass_fn)
            try:
                return original(self, pass_fn, *args, **options)
            finally:
                current.code = before

        return apply

    return wrapper


def _after_pass(current: _Current, seen: GraphSeen) -> Wrapper:
    def wrapper(original: Method) -> Method:
        def exit_observer(self: Any, *error: Any) -> Any:
            if current.part and error[0] is None:
                inside = current.inside or any(self.gm is one for one in current.graph.modules())
                graph = current.graph if inside else self.gm
                seen(compile_id(), current.number, current.part, self.passname, current.code, graph)
            return original(self, *error)

        return exit_observer

    return wrapper


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    for function in PARTS.values():
        require(callable(vars(compile_fx).get(function)), f"{compile_fx.__name__}.{function}")
        require_parameters(vars(compile_fx)[function], "gm")
    require_methods(GraphTransformObserver, "__enter__", "__exit__", *_APPLY)
    for method in _APPLY:
        require_parameters(vars(GraphTransformObserver)[method], "pass_fn")
    require_parameters(GraphTransformObserver.__init__, "gm", "passname")
