"""Write an FX graph as JSON: nodes with operator, arguments, tensors, and lines of Python.

A reference to a node is {"node": NAME}; values that JSON lacks have a key for their kind: {"dtype":
"float32"}, {"float": "inf"}, {"slice": [...]}; an index x[0, 1] is {"tuple": [0, 1]}. Any other argument is
{"other": text}.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Collection, Mapping, Sequence
from types import EllipsisType
from typing import Any

import torch

from tracing.upstream.inductor.user_kernels import written_nodes
from tracing.upstream.torch.custom_operators import formula_line
from tracing.upstream.torch.numpy_functions import indexes, numpy_target
from tracing.upstream.torch.operator_schemas import (
    OWN_NAMESPACES,
    is_operator,
    overload_of,
    written_arguments,
)
from tracing.upstream.torch.source_names import function_of

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)\n\s*(?P<code>[^\n]*)')
_INDEXING = (operator.getitem, operator.setitem)
_CONSTANT = 4096  # elements of a constant of a graph that is written down


def graph_json(module: torch.fx.GraphModule, inputs: Collection[str] = ()) -> dict[str, Any]:
    """The nodes of a graph, in their order, and the Python lines that they come from.

    inputs -- nodes of attributes that are no constants, but inputs of its calls
    """
    lines: dict[str, int] = {}
    nodes = [_node(module, node, lines) for node in module.graph.nodes]
    for one in nodes:
        if one["name"] in inputs:
            one.pop("constant", None)
    return {"nodes": nodes, "lines": [python_frames(text) for text in lines]}


def tensor_attributes(module: torch.fx.GraphModule) -> dict[str, torch.Tensor]:
    """The tensors that a graph reads as attributes, as the parameters of an optimizer, by node."""
    known = {
        node.name: _attribute(module, str(node.target))
        for node in module.graph.nodes
        if node.op == "get_attr"
    }
    return {name: one for name, one in known.items() if type(one) in (torch.Tensor, torch.nn.Parameter)}


def graph_text(module: torch.fx.GraphModule) -> str:
    """The graph for people: one line a node, with shapes, strides and devices."""
    return str(module.print_readable(print_output=False, include_stride=True, include_device=True))


def _node(module: torch.fx.GraphModule, node: torch.fx.Node, lines: dict[str, int]) -> dict[str, Any]:
    written: dict[str, Any] = {"name": node.name, "op": node.op, "target": _target(node)}
    if node.args:
        indexing = node.target in _INDEXING or indexes(node.target)
        written["args"] = [_index(one) if indexing else _argument(one) for one in node.args]
    if node.kwargs:
        written["kwargs"] = _argument(dict(node.kwargs))
    value = node.meta.get("val", node.meta.get("example_value"))
    if value is not None:
        written["value"] = _value(value)
    trace = node.meta.get("stack_trace") or node.stack_trace
    if trace:
        written["line"] = lines.setdefault(trace, len(lines))
    if (nodes := _written(node)) is not None:
        written["written"] = nodes
    if (formula := formula_line(overload_of(node.target))) is not None:
        written["formula"] = formula
    if node.op == "get_attr":
        attribute = _attribute(module, str(node.target))
        if isinstance(attribute, torch.fx.GraphModule):
            written["graph"] = graph_json(attribute)
        else:
            written["constant"] = _constant(attribute)
    return written


def _written(node: torch.fx.Node) -> list[str] | None:
    # the nodes whose memory a kernel or an operator of the program writes; None: torch's own operators do
    if not is_operator(node.target) or node.target.namespace in OWN_NAMESPACES:  # type: ignore[union-attr]
        return written_nodes(node)
    named = written_arguments(node.target, node.args, node.kwargs)
    given = [one for value in named for one in (value if isinstance(value, (list, tuple)) else [value])]
    return [one.name for one in given if isinstance(one, torch.fx.Node)]


def _target(node: torch.fx.Node) -> str:
    target: Any = overload_of(node.target)
    if isinstance(target, str):
        return target
    if is_operator(target):
        return str(target.name())
    if (name := numpy_target(target)) is not None:
        return name
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


def _argument(value: Any) -> Any:
    match value:
        case torch.fx.Node():
            return {"node": value.name}
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case complex():
            return {"complex": [value.real, value.imag]}
        case torch.dtype():
            return {"dtype": str(value).removeprefix("torch.")}
        case torch.device():
            return {"device": str(value)}
        case torch.layout():
            return {"layout": str(value).removeprefix("torch.")}
        case torch.memory_format():
            return {"memory_format": str(value).removeprefix("torch.")}
        case EllipsisType():
            return {"ellipsis": True}
        case slice():
            return {"slice": [_argument(one) for one in (value.start, value.stop, value.step)]}
    if isinstance(value, Mapping):
        return {"mapping": [[_argument(key), _argument(one)] for key, one in value.items()]}
    if isinstance(value, Sequence):
        return [_argument(one) for one in value]
    return {"other": str(value)}


def _index(value: Any) -> Any:
    # x[0, 1] is not x[[0, 1]]
    return {"tuple": _argument(value)} if isinstance(value, tuple) else _argument(value)


def _value(value: Any) -> Any:
    # shapes of a node's value: numbers, or the text of a symbol
    if isinstance(value, torch.Tensor):
        strided = value.layout == torch.strided
        strides = value.stride() if strided else ()
        offset = value.storage_offset() if strided else 0
        # a symbol is not compared: that would add a guard to the program, or fail where it depends on data
        begins = {} if type(offset) is int and offset == 0 else {"offset": _size(offset)}
        return {
            "shape": [_size(one) for one in value.shape],
            "stride": [_size(one) for one in strides],
            "dtype": str(value.dtype).removeprefix("torch."),
            "device": str(value.device),
            **begins,
        }
    if isinstance(value, (list, tuple)):
        return [_value(one) for one in value]
    return {"number": str(value)}


def _size(size: Any) -> int | str:
    return size if type(size) is int else str(size)


def python_frames(trace: str) -> list[list[Any]]:
    """The frames of a stack trace of torch, outermost first: file, line, function, text of the line."""
    frames = _FRAME.finditer(trace)
    return [
        [one["file"], int(one["line"]), function_of(one["function"]), one["code"].strip()] for one in frames
    ]


def _attribute(module: torch.fx.GraphModule, path: str) -> Any:
    value: Any = module
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def _constant(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.numel() > _CONSTANT or value.is_complex():
        return None
    plain = value.detach()
    # opaque, as a weight in the layout of MKL-DNN, it has no elements that can be read
    if "Fake" in type(plain).__name__ or plain.is_meta or plain.layout != torch.strided:
        return None
    try:
        elements = [_argument(one) for one in plain.flatten().tolist()]
    except RuntimeError:  # of a dtype without numbers, as bits8
        return None
    return {"dtype": str(plain.dtype).removeprefix("torch."), "shape": [*plain.shape], "elements": elements}
