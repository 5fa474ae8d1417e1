"""Which tensors have memory of their own: fake tensors and subclasses that wrap others."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map_only

from tracing.upstream.contract import require

__all__ = ["dispatches", "has_storage", "is_fake", "tree_leaves", "tree_map_only"]


def dispatches(kind: Any) -> bool:
    """True for a class of tensors with a `__torch_dispatch__` of its own, fake tensors included."""
    return kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl


def is_fake(kind: type) -> bool:
    """True for the class of the tensors with which torch.compile traces."""
    return issubclass(kind, FakeTensor)


def has_storage(tensor: torch.Tensor) -> bool:
    """False for sparse tensors."""
    return bool(torch._C._has_storage(tensor))


# (storage) -> int: equal for two live objects if and only if they are the same storage
storage_key: Callable[[torch.UntypedStorage], int] = operator.attrgetter("_cdata")


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    dense, sparse = torch.ones(2), torch.ones(2).to_sparse()
    require(has_storage(dense) and not has_storage(sparse), "storages of dense tensors")
    require(
        storage_key(dense.untyped_storage()) == storage_key(dense[1:].untyped_storage()),
        "one number for each storage",
    )
    require(not dispatches(torch.Tensor) and dispatches(FakeTensor), "fake tensors that dispatch")
    require(is_fake(FakeTensor) and not is_fake(torch.nn.Parameter), "fake tensors that are known as such")
