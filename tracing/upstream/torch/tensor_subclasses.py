"""Classify tensor subclasses: those with memory, fake tensors, wrappers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.utils._pytree import tree_leaves, tree_map_only

from tracing.upstream.contract import require

__all__ = [
    "NO_DISPATCH", "FakeTensor", "FunctionalTensor", "has_storage", "storage_key", "tree_leaves",
    "tree_map_only",
]  # fmt: skip


# The `__torch_dispatch__` of a class of tensors that has none of its own. This is a constant, and FakeTensor
# the class itself, because the recorder compares both for every tensor of every operator.
NO_DISPATCH = torch._C._disabled_torch_dispatch_impl


# (tensor) -> bool: False for sparse tensors, and for those inside of torch.vmap
has_storage: Callable[[torch.Tensor], bool] = torch._C._has_storage


# (tensor) -> tensor: a view that is lazily negated, as the imaginary part of a conjugated tensor is
negated_view: Callable[[torch.Tensor], torch.Tensor] = torch._neg_view


# (tensor) -> bool: True for zeros that are no memory, as the tangents of constants are
is_zero: Callable[[torch.Tensor], bool] = torch.Tensor._is_zerotensor


# (storage) -> int: equal for two live objects if and only if they are the same storage
storage_key: Callable[[torch.UntypedStorage], int] = operator.attrgetter("_cdata")


def as_tensor(value: torch.Tensor) -> torch.Tensor:
    """A tensor of a subclass without `__torch_dispatch__` as a plain one; all others as they are.

    Such a subclass may define what comparing it means, and may be another class at each build of a case.
    """
    kind: Any = type(value)
    if kind in (torch.Tensor, torch.nn.Parameter) or kind.__torch_dispatch__ is not NO_DISPATCH:
        return value
    with torch._C.DisableTorchFunctionSubclass():
        return value.as_subclass(torch.Tensor)


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require(is_zero(torch.ops.aten._efficientzerotensor([2])), "zeros that are no memory")
    dense, sparse = torch.ones(2), torch.ones(2).to_sparse()
    require(has_storage(dense) and not has_storage(sparse), "storages of dense tensors")
    require(
        storage_key(dense.untyped_storage()) == storage_key(dense[1:].untyped_storage()),
        "one number for each storage",
    )
    require(negated_view(dense).is_neg(), "a lazily negated view")
    kinds: tuple[Any, ...] = (torch.Tensor, torch.nn.Parameter)
    require(
        all(kind.__torch_dispatch__ is NO_DISPATCH for kind in kinds), "plain tensors that do not dispatch"
    )
    subclass: Any = type("Own", (torch.Tensor,), {})
    own: torch.Tensor = dense.as_subclass(subclass)
    require(type(as_tensor(own)) is torch.Tensor, "a tensor without its subclass")
    fake: Any = FakeTensor
    require(fake.__torch_dispatch__ is not NO_DISPATCH, "fake tensors that dispatch")
