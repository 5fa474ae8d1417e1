"""The layout of a tensor as recorded in a run, and whether the tensor has memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from tracing.model import TensorMeta
from tracing.upstream.torch.tensor_subclasses import NO_DISPATCH, FakeTensor, is_zero


def tensor_meta(tensor: torch.Tensor) -> TensorMeta:
    """The layout of a strided tensor."""
    return TensorMeta(
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()),
        dtype=str(tensor.dtype).removeprefix("torch."),
        device=str(tensor.device),
        offset=int(tensor.storage_offset()),
    )


def takes_itself_apart(kind: Any) -> bool:
    """True for a tensor subclass whose operators are redispatched on its inner tensors."""
    plain = kind.__torch_dispatch__ is NO_DISPATCH
    return not (plain or issubclass(kind, FakeTensor))


def has_memory(tensor: torch.Tensor) -> bool:
    """False for fake and meta tensors, wrapper subclasses, and the zeros of forward-mode derivatives."""
    made = isinstance(tensor, FakeTensor) or tensor.is_meta or is_zero(tensor)
    return not (made or takes_itself_apart(type(tensor)))


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of an operator's argument or result, lists of them included."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for member in value:
            yield from tensors_in(member)
