"""Temporarily replaces an attribute of another project's module or class."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

Method: TypeAlias = Callable[..., Any]
Wrapper: TypeAlias = Callable[[Method], Method]

_ABSENT = object()


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """`owner.name` is `value` inside; afterwards the previous entry (a descriptor, or none) is back."""
    previous = vars(owner).get(name, _ABSENT)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if previous is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, previous)


@contextmanager
def patched(owner: Any, name: str, wrapper: Wrapper) -> Iterator[None]:
    """While active, a function of a module or class, also of pybind11's, is what `wrapper` makes of it."""
    original = vars(owner)[name]
    with replaced(owner, name, functools.wraps(original)(wrapper(original))):
        yield
