"""Compressed parts of a report: the page decodes each when a person opens it.

A chunk is JSON, compressed by zstd, in base64: neither `</script>` nor any other character of a run can end
the element that holds it. Control characters are escaped as in a terminal.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import msgspec
import zstandard

from tracing.report.control_characters import printable

LEVEL = 12  # of zstd: for the passes of a kernel 40 % smaller than deflate, whose window is 32 kB


class Chunks:
    """The chunks of one report, numbered in the order in which they were added."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def add(self, value: Any) -> int:
        """Encode a value of JSON's types; returns the number by which the page asks for it."""
        self.encoded.append(encoded(value))
        return len(self.encoded) - 1

    @property
    def size(self) -> int:
        """Bytes of all chunks in the file."""
        return sum(map(len, self.encoded))


def encoded(value: Any) -> str:
    """A value as base64 of its compressed JSON."""
    text = msgspec.json.encode(_plain(value))
    return base64.b64encode(zstandard.ZstdCompressor(level=LEVEL).compress(text)).decode()


def decoded(chunk: str) -> Any:
    """The value of a chunk, as the page decodes it."""
    return msgspec.json.decode(zstandard.decompress(base64.b64decode(chunk)))


def _plain(value: Any) -> Any:
    # inf and nan as text: JSON has none, and msgspec would write null
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value
