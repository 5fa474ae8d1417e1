"""The signatures of operators: what is equal in many calls, written once and found by a fast key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from tracing.launch.storages import TouchedMemory
from tracing.model import OperatorSignature, TensorMeta
from tracing.operators.effects import Effect
from tracing.operators.text import NUMBER, arguments_text, structure
from tracing.store import RunWriter
from tracing.store.numbers import Numbers

_KNOWN = 1 << 14  # signatures that are remembered: one whose argument is new at each step comes once
_DROPOUT = re.compile(r"\bdropout_p=([\d.e+-]+)")
_PLAIN = {torch.Tensor, torch.nn.Parameter}


@dataclass(slots=True)
class KnownSignature:
    """A signature that has a record."""

    signature: OperatorSignature
    number: int
    segment: int  # that has its record
    numbered: bool = False  # its arguments contain floating-point numbers, which may be others at each call

    def arguments(self, effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """The arguments of a call, if they differ from the signature's; "": they do not."""
        text = arguments_text(effect, args, kwargs) if self.numbered else self.signature.arguments
        return text if text != self.signature.arguments else ""


class OperatorSignatures:
    """Numbers the signatures of a recording."""

    def __init__(self, writer: RunWriter, meta: Callable[[torch.Tensor], TensorMeta]) -> None:
        """meta -- the layout of a tensor"""
        self._meta = meta
        self._known: dict[tuple[Any, ...], KnownSignature] = {}
        self._segments = writer.segments
        self._numbers: Numbers[OperatorSignature] = Numbers(
            writer, lambda number, one: msgspec.structs.replace(one, id=number)
        )
        if self._segments is not None:
            self._segments.deleted.append(self._forget)

    def known(self, key: tuple[Any, ...]) -> KnownSignature | None:
        """The signature with a key of `call_key`; None: it is new."""
        return self._known.get(key)

    def learn(
        self,
        key: tuple[Any, ...],
        effect: Effect,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        reads: Sequence[torch.Tensor],
        writes: Sequence[torch.Tensor],
    ) -> KnownSignature:
        """Remember the signature of a call."""
        if len(self._known) >= _KNOWN:
            self._known.clear()
        text = arguments_text(effect, args, kwargs)
        known = self.of(effect, text, [*map(self._meta, reads)], [*map(self._meta, writes)])
        known.numbered = NUMBER in arguments_text(effect, args, kwargs, form=True)
        self._known[key] = known
        return known

    def of(
        self, effect: Effect, text: str, reads: Sequence[TensorMeta], writes: Sequence[TensorMeta]
    ) -> KnownSignature:
        """The signature of a call that is not remembered."""
        allocates = effect.allocates or effect.resizes
        random = effect.random and not _drops_nothing(effect, text)
        signature = OperatorSignature(0, effect.name, text, tuple(reads), tuple(writes), allocates, random)
        segment = self._segments.number if self._segments is not None else 0
        return KnownSignature(signature, self._numbers.of(signature), segment)

    def refresh(self, known: KnownSignature) -> None:
        """Write the record of a signature, if it is not in the current segment."""
        if self._segments is not None and known.segment != self._segments.number:
            known.number, known.segment = self._numbers.of(known.signature), self._segments.number

    def _forget(self, oldest: int) -> None:
        self._known = {key: known for key, known in self._known.items() if known.segment >= oldest}


def _drops_nothing(effect: Effect, text: str) -> bool:
    # an attention without dropout draws no random numbers
    given = _DROPOUT.search(text)
    return float(given[1] if given else effect.defaults.get("dropout_p", 1.0)) == 0.0


def call_key(
    effect: Effect,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    reads: Sequence[torch.Tensor],
    writes: Sequence[torch.Tensor],
    usable: bool = False,
) -> tuple[tuple[Any, ...], TouchedMemory] | None:
    """The signature of a call as a key for fast lookup, and the addresses of its tensors.

    usable -- all tensors have memory and strides

    None: one of them has no memory or no strides, or its class permits such tensors.
    """
    key: list[Any] = [id(effect), len(reads)]
    structure(effect, args, kwargs, key)
    memory: list[int] = []
    try:
        for tensor in (*reads, *writes):
            if not usable and (type(tensor) not in _PLAIN or tensor.is_meta):
                return None
            storage = tensor.untyped_storage()
            key += (tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype, tensor.device)
            memory += (tensor.data_ptr(), storage.data_ptr(), storage.nbytes())
    except (RuntimeError, NotImplementedError):
        return None
    return tuple(key), tuple(memory)
