"""Kernel arguments that are tuples, as their members: `args.0`, `args.1.0`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import triton.language as tl

from tracing.launch.launch_site import FlatSite, LaunchSite


def flattened(site: LaunchSite, values: Sequence[Any], types: Mapping[str, Any]) -> FlatSite | None:
    """The site with the members of tuples for the tuples, without constants; None if there is no tuple.

    types -- by name, the types for which the values were compiled; a tuple of types for a tuple
    """
    if not any(isinstance(value, tuple) for value in values):
        return None
    paths: dict[str, tuple[int, ...]] = {}

    def add(name: str, path: tuple[int, ...], value: object, kind: object) -> None:
        if isinstance(value, tuple):
            kinds = kind if isinstance(kind, tuple) else (None,) * len(value)
            for i, (member, its_kind) in enumerate(zip(value, kinds, strict=True)):
                add(f"{name}.{i}", (*path, i), member, its_kind)
        elif kind != "constexpr" and not isinstance(value, tl.constexpr):
            paths[name] = path

    for position, (name, value) in enumerate(zip(site.names, values, strict=True)):
        add(name, (position,), value, types.get(name))
    return FlatSite(site, paths)


def empty_members(types: Mapping[str, Any]) -> Iterator[str]:
    """The empty tuples inside of tuples, `args.1`: they have no member that names them.

    types -- by name, the types for which the values were compiled; a tuple of types for a tuple
    """
    for name, kind in types.items():
        if isinstance(kind, tuple):
            inner = {f"{name}.{i}": member for i, member in enumerate(kind)}
            yield from (member for member, its_kind in inner.items() if its_kind == ())
            yield from empty_members(inner)


def named_fields(types: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The fields of the named tuples, `args` or `args.1`.

    types -- by name, the types for which the values were compiled; a tuple of types for a tuple, as named
    """
    for name, kind in types.items():
        if isinstance(kind, tuple):
            if fields := getattr(kind, "_fields", ()):
                yield name, fields
            yield from named_fields({f"{name}.{i}": member for i, member in enumerate(kind)})


def nesting(values: Iterable[Any]) -> tuple[Any, ...]:
    """A key that differs for values whose tuples are nested differently."""
    nested = tuple(nesting(value) if isinstance(value, tuple) else None for value in values)
    return nested if any(one is not None for one in nested) else (None,) * len(nested)
