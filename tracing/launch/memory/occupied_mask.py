"""The bytes that a tensor's elements occupy, as an array."""

from __future__ import annotations

import functools

import numpy as np

from tracing.interpreter.gates import Mask
from tracing.model import TensorMeta
from tracing.views import extent, occupied_bits


@functools.lru_cache(256)
def occupied(meta: TensorMeta) -> Mask:
    """[bytes of its extent] True where a tensor has an element."""
    start, stop = extent(meta)
    packed = occupied_bits(meta).to_bytes((stop - start + 7) // 8, "little")
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=stop - start, bitorder="little")
    return bits.view(np.bool_)
