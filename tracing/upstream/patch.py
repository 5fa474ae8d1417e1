"""Temporarily replaces an attribute of another project's module or class, or an item of a dictionary.

Replacements of one attribute may overlap without nesting: each is undone when its own block ends, and those
made after it stay in effect. If another project has patched a replacement, its patch is removed with the
replacement.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

Method: TypeAlias = Callable[..., Any]
Wrapper: TypeAlias = Callable[[Method], Method]

_ABSENT = object()


@dataclass(eq=False, slots=True)
class _Layer:
    # one active replacement
    make: Callable[[Any], Any]  # makes the value of this layer from the one below
    below: Any  # a descriptor, a value, or _ABSENT
    value: Any


_layers: dict[tuple[int, str], list[_Layer]] = {}  # by owner and name, in the order of their beginning
_lock = threading.RLock()


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """While active, `owner.name` is `value`; then the previous entry (a descriptor, or none) is restored.

    owner -- a module, a class or another object; of a dictionary its item `name` is replaced
    """
    with _layered(owner, name, lambda below: value):
        yield


@contextmanager
def patched(owner: Any, name: str, wrapper: Wrapper) -> Iterator[None]:
    """While active, a function of a module or class, also of pybind11's, is replaced by `wrapper(function)`.

    wrapper -- is called once more if an earlier replacement ends first
    """
    with _layered(owner, name, lambda original: functools.wraps(original)(wrapper(original))):
        yield


@contextmanager
def _layered(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    key = (id(owner), name)  # the owner lives as long as this block
    with _lock:
        below = _entries(owner).get(name, _ABSENT)
        layer = _Layer(make, below, make(below))
        _set(owner, name, layer.value)
        _layers.setdefault(key, []).append(layer)
    try:
        yield
    finally:
        with _lock:
            _set(owner, name, _without(_layers[key], layer))
            if not _layers[key]:
                del _layers[key]


def _without(layers: list[_Layer], ended: _Layer) -> Any:
    # the value of the attribute without this layer; the layers above it are rebuilt
    position = layers.index(ended)
    del layers[position]
    old, new = ended.value, ended.below
    for layer in layers[position:]:
        # another project's replacement lies in between, and refers to the layer that ended
        if layer.below is not old:
            return layers[-1].value
        old, layer.below = layer.value, new
        layer.value = new = layer.make(new)
    return new


def _entries(owner: Any) -> dict[str, Any]:
    return owner if isinstance(owner, dict) else vars(owner)


def _set(owner: Any, name: str, value: object) -> None:
    if isinstance(owner, dict):
        if value is _ABSENT:
            owner.pop(name, None)
        else:
            owner[name] = value
    elif value is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)
