"""Kernel arguments that are no tensors, but have `data_ptr` and `dtype`: Triton takes them for pointers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from tracing.launch.tensors import has_memory
from tracing.upstream.torch.constructors import empty
from tracing.upstream.torch.dispatch_modes import dispatch_disabled

_DEPTH = 2  # the object's members, and theirs


def addressed(value: Any) -> torch.Tensor | None:
    """What such an object points to: from its address to the end of the storage of a tensor that it holds.

    None if no tensor among its members has that address in its storage, or if a stride is negative: then the
    kernel reads in front of the address.
    """
    dtype, address = getattr(value, "dtype", None), value.data_ptr()
    if not isinstance(dtype, torch.dtype) or any(stride < 0 for stride in _strides(value)):
        return None
    for tensor in _members(value, _DEPTH):
        if tensor.data_ptr() == address and tensor.dtype == dtype:
            return tensor
        storage = tensor.untyped_storage()
        offset = address - storage.data_ptr()
        if 0 <= offset < storage.nbytes() and offset % dtype.itemsize == 0:
            size = (storage.nbytes() - offset) // dtype.itemsize
            with dispatch_disabled():
                pointed = empty(0, dtype=dtype, device=tensor.device)
                return pointed.set_(storage, offset // dtype.itemsize, (size,))  # type: ignore[call-overload, no-any-return]
    return None


def _members(value: object, depth: int) -> Iterator[torch.Tensor]:
    slots = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
    members = [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots)]
    for member in members:
        if not isinstance(member, torch.Tensor):
            yield from _members(member, depth - 1) if depth > 1 else ()
        elif has_memory(member):
            yield member


def _strides(value: Any) -> tuple[int, ...]:
    stride = getattr(value, "stride", None)
    try:
        strides = stride() if callable(stride) else stride
    except TypeError:  # it takes a dimension
        return ()
    return tuple(strides) if isinstance(strides, (tuple, list)) else ()
