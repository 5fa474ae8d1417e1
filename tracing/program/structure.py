"""Split an object into its values, each named by its access path in Python.

    {"logits": x, "scores": [1.0, None]}  as "output"

    output                  Container("dict", ("['logits']", "['scores']"))
    output['logits']        x
    output['scores']        Container("list", ("[0]", "[1]"))
    output['scores'][0]     PlainValue("float", "1.0")
    output['scores'][1]     PlainValue("NoneType", "None")

Types are named without their module: a case's module is named after its file.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np
import torch

from tracing.model import Container, PlainValue, Uncomparable
from tracing.upstream.torch.tensor_subclasses import as_tensor

Fact: TypeAlias = torch.Tensor | PlainValue | Container | Uncomparable
Facts: TypeAlias = dict[str, Fact]

MOST = 100_000  # values of one object
_DEPTH = 100
_TEXT = 1000  # characters that are kept of a plain value
_PLAIN = (
    bool, int, float, complex, str, bytes, type(None), type(...), range, slice, Decimal, Fraction, PurePath,
    date, datetime, time, timedelta, np.generic, torch.dtype, torch.device, torch.layout,
    torch.memory_format, torch.Size,
)  # fmt: skip
_ACTIVE = (torch.nn.Module, torch.optim.Optimizer, type, types.ModuleType, functools.partial)
_FOREIGN = {*sys.stdlib_module_names, "torch", "triton", "numpy"}  # these packages define their own fields


def facts_of(value: object, name: str) -> Facts:
    """The values that `value` consists of, called `name`, by name; tensors as they are.

    Values without a recordable equality are Uncomparable. Cost: some µs a value.
    """
    facts: Facts = {}
    _visit(facts, value, name, [])
    return facts


def type_name(value: object) -> str:
    """The type of a value as a run names it."""
    return type(value).__qualname__


def is_plain(value: object) -> bool:
    """True if a value is described completely by its text."""
    return isinstance(value, (*_PLAIN, enum.Enum))


def key_text(key: object, position: int) -> str:
    """The Python syntax of an access to a member of a mapping: `['logits']`."""
    return f"[{key!r}]" if is_plain(key) else f"[key {position}]"


def fields_of(value: object) -> dict[str, Any]:
    """The fields of an object of a class written in Python, other than torch's and the standard library's."""
    if isinstance(value, _ACTIVE):
        return {}
    if dataclasses.is_dataclass(value):
        return {one.name: getattr(value, one.name, None) for one in dataclasses.fields(value)}
    if type(value).__module__.partition(".")[0] in _FOREIGN:
        return {}
    slots = (name for kind in type(value).__mro__ for name in _slots(kind))
    slotted = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return slotted | getattr(value, "__dict__", {})


def _slots(kind: type) -> Iterable[str]:
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else slots
    return (name for name in names if name not in ("__dict__", "__weakref__"))


def _visit(facts: Facts, value: Any, name: str, above: list[int]) -> None:
    # above -- the ids of the containers that contain this value
    if isinstance(value, torch.Tensor) and not hasattr(value, "__tensor_flatten__"):
        facts[name] = as_tensor(value)
    elif is_plain(value):
        facts[name] = PlainValue(type_name(value), _text(value))
    elif isinstance(value, (set, frozenset)) and all(map(is_plain, value)):
        facts[name] = PlainValue(type_name(value), _short(f"{{{', '.join(sorted(map(repr, value)))}}}"))
    elif id(value) in above:
        facts[name] = Uncomparable(type_name(value), "it contains itself")
    elif len(above) > _DEPTH or len(facts) >= MOST:
        facts[name] = Uncomparable(type_name(value), f"it lies beyond {MOST} values, or {_DEPTH} levels")
    else:
        _visit_members(facts, value, name, above)


def _visit_members(facts: Facts, value: Any, name: str, above: list[int]) -> None:
    members = dict(_members(value))
    if not members and not isinstance(value, (list, tuple, deque, Mapping)):
        facts[name] = Uncomparable(type_name(value), "it has no fields that Python shows")
        return
    facts[name] = Container(type_name(value), tuple(members))
    above.append(id(value))
    for key, member in members.items():
        _visit(facts, member, name + key, above)
    above.pop()


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):  # a subclass made of other tensors: a DTensor, ...
        yield from ((f".{name}", getattr(value, name)) for name in value.__tensor_flatten__()[0])  # type: ignore[attr-defined]
    elif isinstance(value, np.ndarray):
        yield "[:]", _elements(value)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f".{name}", getattr(value, name)) for name in value._fields)
    elif isinstance(value, (list, tuple, deque)):
        yield from ((f"[{i}]", member) for i, member in enumerate(value))
    elif isinstance(value, Mapping) and not dataclasses.is_dataclass(value):
        yield from ((key_text(key, i), member) for i, (key, member) in enumerate(value.items()))
    else:
        yield from ((f".{field}", member) for field, member in fields_of(value).items())


def _elements(array: np.ndarray[Any, Any]) -> object:
    try:
        return torch.from_numpy(np.array(array))  # a copy: torch takes neither strides < 0 nor read-only ones
    except TypeError:  # strings, objects
        return array.tolist()


def _text(value: object) -> str:
    if isinstance(value, enum.Enum):
        return f"{type_name(value)}.{value.name}"
    return _short(repr(value.item() if isinstance(value, np.generic) else value))


def _short(text: str) -> str:
    if len(text) <= _TEXT:
        return text
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()
    return f"{text[: _TEXT // 5]}… ({len(text)} characters, {digest})"
