"""Record the graphs of a compile after each of Inductor's graph passes, as text.

    %x = placeholder : f32[3, 4]
    %add = aten.add.Tensor(%x, 1) : f32[3, 4]
    output((%add,))

Nodes are named as torch names them. Stack traces and other metadata are left out: they differ between
versions of torch and do not affect the computation.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch

from tracing.model import GraphText, without_addresses
from tracing.store import RunWriter
from tracing.upstream.inductor.graph_pass_observer import graph_passes_followed
from tracing.upstream.torch.operator_schemas import is_operator

_DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16",
           torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8",
           torch.bool: "b8", torch.complex64: "c64", torch.complex128: "c128"}  # fmt: skip


@contextmanager
def graph_passes_recorded(writer: RunWriter) -> Iterator[None]:
    """While active, every graph is written into a run before the first and after each pass.

    Cost: the text of a graph for each pass; equal texts are stored once.
    """
    index = itertools.count()

    def seen(
        compile_id: str, number: int, part: str, name: str, code: str, graph: torch.fx.GraphModule
    ) -> None:
        text = writer.blob(graph_text(graph))
        writer.append(GraphText(next(index), compile_id, number, cast(Any, part), name, text, code))

    with graph_passes_followed(seen):
        yield


def graph_text(graph: torch.fx.GraphModule) -> str:
    """A graph, one node a line; graphs inside of it are indented below the node that names them."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: torch.fx.GraphModule, indent: str = "") -> Iterator[str]:
    for node in graph.graph.nodes:
        if node.op == "output":
            yield f"{indent}output({_value(node.args[0])})"
            continue
        yield f"{indent}%{node.name} = {_call(node)}{_type(node)}"
        inner = getattr(graph, str(node.target), None) if node.op == "get_attr" else None
        if isinstance(inner, torch.fx.GraphModule):
            yield from _lines(inner, indent + "    ")


def _call(node: torch.fx.Node) -> str:
    if node.op == "placeholder":
        return "placeholder"
    target = without_addresses(_target(node.target))
    if node.op == "get_attr":
        return f"get_attr {target}"
    values = [_value(one) for one in node.args]
    values += [f"{name}={_value(one)}" for name, one in node.kwargs.items()]
    return f"{target}({', '.join(values)})"


def _target(target: Any) -> str:
    if isinstance(target, str) or is_operator(target):
        return str(target)
    name = getattr(target, "__name__", None) or str(target)
    module = getattr(target, "__module__", None)
    return f"{module}.{name}" if module else name


def _value(value: Any) -> str:
    match value:
        case torch.fx.Node():
            return f"%{value.name}"
        case tuple():
            return f"({', '.join(map(_value, value))}{',' if len(value) == 1 else ''})"
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            return "{" + ", ".join(f"{key}: {_value(one)}" for key, one in value.items()) + "}"
        case slice():
            return f"slice({_value(value.start)}, {_value(value.stop)}, {_value(value.step)})"
    return without_addresses(repr(value) if isinstance(value, str) else str(value))


def _type(node: torch.fx.Node) -> str:
    value = node.meta.get("val", node.meta.get("example_value"))
    if isinstance(value, torch.Tensor):
        name = _DTYPES.get(value.dtype, str(value.dtype).removeprefix("torch."))
        return f" : {name}[{', '.join(map(str, value.shape))}]"
    return f" : {value}" if isinstance(value, (int, float, torch.SymInt, torch.SymFloat)) else ""
