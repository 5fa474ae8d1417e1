"""Converts the values of a case into records: tensors become digests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec
import torch

from tracing.digest.host import digest
from tracing.launch.tensors import tensor_meta
from tracing.model import Digest, TensorValue, Uncomparable, Value
from tracing.program.state import DIFFERENTIABLE, STORAGE
from tracing.program.structure import Facts, type_name

Unwritten: TypeAlias = Callable[[torch.Tensor], tuple[int, int] | None]


def values(facts: Facts, unwritten: Unwritten = lambda tensor: None) -> Iterator[tuple[str, Value]]:
    """The values by name; each tensor is digested once, whatever names it has.

    unwritten -- the uninitialised elements of a tensor: the first, and how many

    The storage of a result, and whether it requires gradients, are compared with eager, but are no values.

    On a GPU the host waits for each of them, and copies it.
    """
    known: dict[Any, Digest] = {}
    for name, fact in facts.items():
        if name.startswith((STORAGE, DIFFERENTIABLE)):
            continue
        yield name, _digested(fact, known, unwritten) if isinstance(fact, torch.Tensor) else fact


def _digested(tensor: torch.Tensor, known: dict[Any, Digest], unwritten: Unwritten) -> Value:
    try:
        meta = tensor_meta(tensor)
        address = tensor.untyped_storage().data_ptr(), tensor.is_conj(), tensor.is_neg()
        if (meta, address) not in known:
            known[meta, address] = digest(tensor)
    except (RuntimeError, NotImplementedError, TypeError) as error:  # sparse, or a subclass without bits
        kind = str(tensor.dtype).removeprefix("torch.")
        return Uncomparable(f"{type_name(tensor)} of {kind}", str(error).strip().split("\n")[0])
    layout = msgspec.structs.replace(meta, device="", offset=0)
    return TensorValue(layout, known[meta, address], tensor.data_ptr(), unwritten(tensor))
