"""Builds the call of a kernel from recorded arguments, which name each member of a tuple."""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


def nested(
    values: Mapping[str, Any], parameters: Iterable[str], fields: Mapping[str, Sequence[str]], path: str = ""
) -> dict[str, Any]:
    """Build the arguments of a kernel: the members `t.0` and `t.1.0` make the tuple `t`.

    parameters -- names of all parameters of the kernel; a parameter without a value is an empty tuple, for
                  only an empty tuple has no recorded member
    fields     -- of the named tuples, `t` or `t.1`
    path       -- of the tuple whose members are built, `t.`
    """
    made = {name: value for name, value in values.items() if "." not in name}
    members: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        root, _, rest = name.partition(".")
        if root not in made:
            members.setdefault(root, {})[rest] = value
    for root, flat in members.items():
        indices = [int(name.partition(".")[0]) for name in flat]
        inside = nested(flat, map(str, range(max(indices) + 1)), fields, f"{path}{root}.")
        made[root] = _tuple(inside.values(), fields.get(f"{path}{root}", ()))
    return {name: made.get(name, ()) for name in parameters}


def _tuple(members: Iterable[Any], fields: Sequence[str]) -> tuple[Any, ...]:
    return namedtuple("Named", fields)(*members) if fields else tuple(members)


def bound(function: Callable[..., Any], values: Mapping[str, Any]) -> inspect.BoundArguments:
    """The values as `args` and `kwargs` of a call; a parameter `*args` takes a tuple apart."""
    return inspect.BoundArguments(inspect.signature(function), dict(values))
