"""Values of a case as a run holds them: tensors become digests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import torch

from tracing.model import Digest, TensorValue, Uncomparable, Value
from tracing.record.catalogue import tensor_meta
from tracing.record.digest import digest
from tracing.record.structure import Facts, type_name


def values(facts: Facts) -> Iterator[tuple[str, Value]]:
    """The values by name; each tensor is digested once, whatever names it has.

    On a GPU the host waits for each of them, and copies it.
    """
    known: dict[Any, Digest] = {}
    for name, fact in facts.items():
        yield name, _digested(fact, known) if isinstance(fact, torch.Tensor) else fact


def _digested(tensor: torch.Tensor, known: dict[Any, Digest]) -> Value:
    try:
        meta = tensor_meta(tensor)
        place = tensor.untyped_storage().data_ptr(), tensor.is_conj(), tensor.is_neg()
        if (meta, place) not in known:
            known[meta, place] = digest(tensor)
    except (RuntimeError, NotImplementedError, TypeError) as error:  # sparse, or a subclass without bits
        kind = str(tensor.dtype).removeprefix("torch.")
        return Uncomparable(f"{type_name(tensor)} of {kind}", str(error).strip().split("\n")[0])
    return TensorValue(msgspec.structs.replace(meta, device="", offset=0), known[meta, place])
