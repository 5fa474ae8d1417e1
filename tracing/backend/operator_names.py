"""Map the names of an operator in Dynamo's graphs, ATen, prims and modules to one key.

`torch.linalg.lu`, `aten.linalg_lu.default` and `linalg_lu` are one operator, and so are `x + y`, `torch.add`,
`aten.add_` and `prims.add`. A key is their common name, "linalg_lu" or "add"; an overload has a second key,
"add.Tensor", and a class of modules has its own, "torch.nn.modules.conv.Conv2d". Operators of
other namespaces than aten and prims have keys with the namespace, "mylib::add". A Triton kernel has the keys
"triton" and "triton.my_kernel".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any, TypeAlias

import torch
from torch.fx import Node

from tracing.backend.node_values import called_operator
from tracing.upstream.inductor.user_kernels import jit_function, launched_name
from tracing.upstream.torch.operator_schemas import schema_of
from tracing.upstream.triton.jit import JITFunction

OperatorName: TypeAlias = str | Callable[..., Any] | type[torch.nn.Module]

_TORCH = ("aten", "prims")
_PACKET, _OVERLOAD = type(torch.ops.aten.add), type(torch.ops.aten.add.Tensor)
_OWNERS = (torch, torch.nn, torch.nn.functional, torch.Tensor, operator)
_COUNTER = re.compile(r"_\d+$")  # Dynamo calls its second convolution conv2d_1


def keys_of(node: Node) -> Iterator[str]:
    """The keys of the operator of a node, of the function and of the modules in the program that called it.

    Of a backward node those of its own operator only; likewise of detach, by which AOTAutograd saves tensors,
    and of the views by which it replaces an operator that works in place.
    """
    target: Any = called_operator(node)
    if (kernel := launched_name(node)) is not None:
        yield from ("triton", f"triton.{kernel}")
    if node.op == "call_method":
        yield _base(target)
    elif node.op == "call_function":
        yield from _keys_of_object(target)
        if target is torch.ops.aten.detach.default or _replays_write(node, target):
            return
    if (original := node.meta.get("original_aten")) is not None:
        yield from _keys_of_object(original)
    for name, function in (node.meta.get("source_fn_stack") or [])[-1:]:
        yield _base(_COUNTER.sub("", str(name)))
        yield from [_base(function)] if isinstance(function, str) else _keys_of_object(function)
    for _, module in (node.meta.get("nn_module_stack") or {}).values():
        yield module if isinstance(module, str) else _class_key(module)


def _replays_write(node: Node, target: Any) -> bool:
    # AOTAutograd computes `x[0].exp_()` as a view, exp, and a scatter of its result into x
    if not isinstance(target, _OVERLOAD):
        return False
    views = any(one.alias_info is not None for one in schema_of(target).returns)
    replays = views or target.overloadpacket.__name__.endswith("_scatter")
    called = [str(function) for _, function in (node.meta.get("source_fn_stack") or [])[-1:]]
    return replays and any(one != _base(one) for one in called)  # "exp_"


def key_of(name: OperatorName) -> str:
    """The key of an operator that a user names.

    name -- a function ("linalg.lu", torch.linalg.lu), an operator ("prims.add", "aten.add.Tensor",
            torch.ops.aten.add), a class of modules ("nn.Conv2d"), a name without a namespace ("add"), a
            Triton kernel ("triton.my_kernel", or the function), or "triton" for every Triton kernel

    Raises ValueError, with similar names, if torch has no such operator: the name would never match.
    """
    if not isinstance(name, str):
        return [*_keys_of_object(name)][-1]
    text = name.removeprefix("torch.ops.").replace("::", ".")
    namespace, _, rest = text.partition(".")
    if namespace == "triton":
        return text
    if namespace in _TORCH and rest:
        if _resolved(getattr(torch.ops, namespace), rest) is not None:
            return _operator_key(namespace, rest)
        raise ValueError(_unknown(name))
    if "::" in name or name.startswith("torch.ops."):
        return _operator_key(namespace, rest)
    text = re.sub(r"^(torch\.)?(nn\.functional\.|F\.|nn\.|Tensor\.|operator\.)?", "", name)
    for owner in _OWNERS:
        value = _resolved(owner, text)
        if callable(value):
            return [*_keys_of_object(value)][-1]
    if any(_resolved(getattr(torch.ops, one), text) is not None for one in _TORCH):
        return _base(text)
    raise ValueError(_unknown(name))


def _keys_of_object(value: Any) -> Iterator[str]:
    # the last one is the most specific
    if isinstance(value, type) and issubclass(value, torch.nn.Module):
        yield _class_key(value)
    elif isinstance(value, (_PACKET, _OVERLOAD)):
        namespace, name, *overload = str(value).split(".")
        yield _operator_key(namespace, name)
        if overload:
            yield _operator_key(namespace, f"{name}.{overload[0]}")
    elif isinstance(kernel := jit_function(value), JITFunction):
        yield f"triton.{kernel.__name__}"
    elif name := getattr(value, "__name__", ""):
        yield _base(name)


def _operator_key(namespace: str, name: str) -> str:
    base, _, overload = name.partition(".")
    base = _base(base) if namespace in _TORCH else f"{namespace}::{base}"
    return f"{base}.{overload}" if overload else base


def _base(name: str) -> str:
    # add_ is add; __and__ and _softmax keep their underscores
    return name if name.endswith("__") else name.rstrip("_")


def _class_key(module: type) -> str:
    return f"{module.__module__}.{module.__qualname__}"


def _resolved(owner: Any, path: str) -> Any:
    for name in path.split("."):
        owner = getattr(owner, name, None)
    return owner


def _unknown(name: str) -> str:
    names = {*dir(torch), *dir(torch.nn), *dir(torch.nn.functional), *dir(torch.Tensor)}
    names |= {f"linalg.{one}" for one in dir(torch.linalg)}
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    near += get_close_matches(name.rpartition(".")[2], names, n=3, cutoff=0.5)
    return f"torch has no operator {name!r}; nearest: {', '.join(dict.fromkeys(near)) or 'none'}"
