"""The leaves of nested lists, tuples and dicts."""

from __future__ import annotations

from torch.utils._pytree import tree_leaves, tree_map

from tracing.upstream.contract import require

__all__ = ["tree_leaves", "tree_map"]


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    nested = ([1, (2,)], {"a": 3})
    require(tree_leaves(nested) == [1, 2, 3], "the leaves of nested containers")
    require(tree_map(lambda leaf: -leaf, nested) == ([-1, (-2,)], {"a": -3}), "a copy with other leaves")
