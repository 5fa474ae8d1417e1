"""Finds the tensors and the optimizers that a workload's function can reach and so may change.

It searches modules, the closures, defaults and globals of the user's functions, the objects of bound methods
and functools.partial, lists, tuples, dicts, the fields of objects and of their classes, and the arguments:
breadth first, so that each tensor gets its shortest name.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import types
from collections import deque
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from tracing.model import Workload
from tracing.program.structure import fields_of, is_plain, key_text
from tracing.program.user_code import is_users, names_in
from tracing.upstream.torch.modules import COMPILED, buffers_of, parameters_of, submodules_of

MOST = 100_000  # maximum of visited objects
_OWN = frozenset(torch.nn.Module().__dict__)  # torch's fields of a module: tensors by name, and hooks
_BLIND = (type, types.ModuleType, torch.Generator)


@dataclass(slots=True)
class Reached:
    """The reached objects by name: "parameter head.weight", "state cache[0]", "input 0['x']"."""

    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    optimizers: dict[str, torch.optim.Optimizer] = field(default_factory=dict)
    whole: bool = True  # False: there were more objects than the maximum

    def add(self, kind: str, path: str, tensor: torch.Tensor) -> None:
        """Note a tensor; arguments of the case are named as such, whatever they are."""
        name = path if path.startswith("input ") else f"{kind} {path}"
        self.tensors[_free(name, self.tensors)] = tensor

    def add_optimizer(self, path: str, optimizer: torch.optim.Optimizer) -> None:
        """Note an optimizer, and those of its parameters that are not known yet."""
        name = _free(path, self.optimizers)
        self.optimizers[name] = optimizer
        known = {id(tensor) for tensor in self.tensors.values()}
        for i, group in enumerate(optimizer.param_groups):
            for j, tensor in enumerate(group["params"]):
                if id(tensor) not in known:
                    self.add("parameter", f"{name}.param_groups[{i}]['params'][{j}]", tensor)


def _free(name: str, taken: Container[str]) -> str:
    # two functions may have variables of the same name
    numbered = (f"{name} ({n})" for n in itertools.count(2))
    return name if name not in taken else next(one for one in numbered if one not in taken)


def arguments(workload: Workload) -> dict[str, Any]:
    """The arguments of a workload by name: "input 0", "input mask"."""
    named = {f"input {i}": value for i, value in enumerate(workload.args)}
    return named | {f"input {name}": value for name, value in workload.kwargs.items()}


def reachable(workload: Workload) -> Reached:
    """The objects that the function and the arguments of a workload reach; 1 to 2 µs per object."""
    reached = Reached()
    roots = [("", workload.fn), *arguments(workload).items()]
    waiting = deque[tuple[str, Any]](roots)
    seen: dict[int, object] = {}  # keeps the object alive, so that no other object gets its id
    optimizers: list[tuple[str, torch.optim.Optimizer]] = []
    while waiting:
        path, value = waiting.popleft()
        if id(value) in seen:
            continue
        if len(seen) == MOST:
            reached.whole = False
            break
        seen[id(value)] = value
        if isinstance(value, torch.Tensor):
            kind = "parameter" if isinstance(value, torch.nn.Parameter) else "state"
            reached.add(kind, path, value)
        elif isinstance(value, torch.optim.Optimizer):
            optimizers.append((path or type(value).__name__, value))
        else:
            if isinstance(value, torch.nn.Module):
                _own_tensors(reached, path, value, seen)
            waiting.extend((at, one) for at, one in _members(path, value) if not is_plain(one))
    for path, optimizer in optimizers:  # optimizers come last: elsewhere their parameters have better names
        reached.add_optimizer(path, optimizer)
    return reached


def _own_tensors(reached: Reached, path: str, module: torch.nn.Module, seen: dict[int, object]) -> None:
    kinds: tuple[tuple[str, Mapping[str, torch.Tensor | None]], ...] = (
        ("parameter", parameters_of(module)), ("buffer", buffers_of(module)),
    )  # fmt: skip
    for kind, tensors in kinds:
        for name, tensor in tensors.items():
            if tensor is not None and id(tensor) not in seen:
                seen[id(tensor)] = tensor
                reached.add(kind, _below(path, name), tensor)


def _members(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.nn.Module):
        for name, module in submodules_of(value).items():
            yield (path if name == COMPILED else _below(path, name)), module  # of torch.compile
        yield from ((_below(path, name), one) for name, one in vars(value).items() if name not in _OWN)
        yield from _of_class(path, value)
    elif isinstance(value, functools.partial):
        yield path, value.func
        yield from ((f"{path}.args[{i}]" if path else f"args[{i}]", one) for i, one in enumerate(value.args))
        yield from ((_below(path, name), one) for name, one in value.keywords.items())
    elif isinstance(value, types.MethodType):
        yield _below(path, "self"), value.__self__
        yield path, value.__func__
    elif isinstance(value, types.FunctionType):
        yield from _of_function(path, value)
    elif isinstance(value, (list, tuple, deque)):
        yield from ((f"{path}[{i}]", one) for i, one in enumerate(value))
    elif isinstance(value, dict):
        yield from ((path + key_text(key, i), one) for i, (key, one) in enumerate(value.items()))
    elif not isinstance(value, _BLIND):
        yield from _of_object(path, value)


def _of_function(path: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    wrapped = vars(function).get("__wrapped__")
    if wrapped is not None:
        yield path, wrapped
    if not is_users(function.__code__.co_filename):
        return
    code, known = function.__code__, function.__globals__
    names = list(names_in(code))
    named = {name: known[name] for name in names if name in known}
    for module in [name for name, one in named.items() if _is_users_module(one)]:
        inside = vars(named[module])
        named |= {f"{module}.{name}": inside[name] for name in names if name in inside}
    positional, defaults = code.co_varnames[: code.co_argcount], function.__defaults__ or ()
    named |= dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    named |= function.__kwdefaults__ or {}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # nothing is in it yet
            named[name] = cell.cell_contents
    yield from ((_below(path, name), one) for name, one in named.items())


def _of_object(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    wrapped = inspect.getattr_static(value, "__wrapped__", None)  # the user's __getattr__ is not run
    if wrapped is not None:
        yield path, wrapped
    if type(value).__module__.startswith("torch.optim."):  # a scheduler refers to its optimizer
        yield from ((_below(path, name), one) for name, one in vars(value).items())
    else:
        yield from ((_below(path, name), one) for name, one in fields_of(value).items())
        yield from _of_class(path, value)


def _of_class(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    # attributes of an object's classes that are the user's, and the globals that their methods use
    for kind in type(value).__mro__:
        if _is_users_module(sys.modules.get(kind.__module__)):
            for name, one in vars(kind).items():
                if not name.startswith("__") or name == "__call__":
                    yield _below(path, name), one


def _is_users_module(value: object) -> bool:
    return isinstance(value, types.ModuleType) and is_users(getattr(value, "__file__", None) or "<built-in>")


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
