"""The leaves of nested lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree

from tracing.upstream.contract import require


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """A copy with other leaves.

    torch's own function takes 7 times as long for the arguments of an operator.
    """
    kind = type(tree)
    if kind is tuple or kind is list:
        return kind([tree_map(function, one) for one in tree])
    if kind is dict:
        return {name: tree_map(function, one) for name, one in tree.items()}
    if isinstance(tree, tuple) or kind in _pytree.SUPPORTED_NODES:
        return _pytree.tree_map(function, tree)
    return function(tree)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves, in order."""
    return [*_leaves(tree)]


def tree_tensors(tree: Any) -> list[torch.Tensor]:
    """The leaves that are tensors, in order."""
    return [one for one in _leaves(tree) if isinstance(one, torch.Tensor)]


def _leaves(tree: Any) -> Iterator[Any]:
    kind = type(tree)
    if kind is tuple or kind is list:
        for one in tree:
            yield from _leaves(one)
    elif kind is dict:
        for one in tree.values():
            yield from _leaves(one)
    elif isinstance(tree, tuple) or kind in _pytree.SUPPORTED_NODES:
        yield from _pytree.tree_leaves(tree)
    else:
        yield tree


class _Pair(NamedTuple):
    first: Any
    second: Any


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    nested = ([1, (2,)], {"a": _Pair(3, [4, None])})
    require(tree_leaves(nested) == _pytree.tree_leaves(nested), "the leaves of nested containers")
    copy, theirs = (of(str, nested) for of in (tree_map, _pytree.tree_map))
    require(copy == theirs and isinstance(copy[1]["a"], _Pair), "a copy with other leaves")
