"""Parse MLIR's types and attributes, as far as needed for shapes and elements of values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tracing.mlir.generic import split

_SHAPED = re.compile(r"(?:tensor|!ttg\.memdesc)<((?:\d+x)*)(.*)>", re.DOTALL)
_POINTER = re.compile(r"!tt\.ptr<([\w.!<>]+?)(?:, \d+)?>")
_ARRAY = re.compile(r"array<i\d+(?:: (.*))?>", re.DOTALL)
_DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "f16": np.float16,
    "bf16": np.float32,  # computed in float32 and rounded to its bits: numpy has no such type
    "f32": np.float32,
    "f64": np.float64,
}


class Unknown(Exception):
    """The operation is not supported."""


@dataclass(frozen=True, slots=True)
class Type:
    """The shape and element type of a value."""

    shape: tuple[int, ...]  # () of a scalar
    element: str  # "f32", "!tt.ptr<f16>", or the whole type where it has none

    @property
    def pointee(self) -> str | None:
        """The type that the elements point to, if they are pointers."""
        match = _POINTER.fullmatch(self.element)
        return match[1] if match else None

    @property
    def dtype(self) -> Any:
        """numpy's type of the elements; a pointer is its address. Raises Unknown."""
        if self.pointee:
            return np.int64
        if self.element not in _DTYPES:
            raise Unknown(f"elements of type {self.element}")
        return _DTYPES[self.element]


@lru_cache(maxsize=4096)
def type_of(text: str) -> Type:
    """A type by its text."""
    match = _SHAPED.fullmatch(text)
    if match is None:
        return Type((), text)
    element = split(match[2])[0]
    return Type(tuple(int(size) for size in match[1].split("x") if size), element)


def rounded(values: Any, kind: Type) -> Any:
    """Values converted to the element type: its width, or the bits of bf16."""
    with np.errstate(all="ignore"):
        array = np.asarray(values).astype(kind.dtype, copy=False)
    if kind.element != "bf16":
        return array
    bits = array.view(np.uint32).astype(np.uint64)
    even = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000)
    return np.where(np.isnan(array), array, even.astype(np.uint32).view(np.float32))


@lru_cache(maxsize=4096)
def integer(text: str) -> int:
    """`4 : i32`, `true`."""
    word = text.partition(":")[0].strip()
    return {"true": 1, "false": 0, "unit": 1}.get(word) if word in ("true", "false", "unit") else int(word)  # type: ignore[return-value]


@lru_cache(maxsize=4096)
def integers(text: str) -> tuple[int, ...]:
    """`array<i32: 1, 0>`."""
    match = _ARRAY.fullmatch(text)
    if match is None:
        raise Unknown(f"the attribute {text}")
    return tuple(int(word) for word in (match[1] or "").split(",") if word.strip())


@lru_cache(maxsize=4096)
def constant(text: str) -> Any:
    """The value of `dense<0.0> : tensor<4xf32>`, of `1 : i32`, of `true`."""
    if text in ("true", "false"):
        return np.bool_(text == "true")
    word, _, kind = text.rpartition(" : ")
    of = type_of(kind.strip())
    dense = re.fullmatch(r"dense<(.*)>", word.strip(), re.DOTALL)
    if dense is None:
        return rounded(_number(word.strip(), of), of)[()]
    content = dense[1].strip()
    if content.startswith('"'):
        raise Unknown("a constant of hexadecimal bytes")
    numbers = [_number(one, of) for one in re.findall(r"[^\[\],\s]+", content)]
    if len(numbers) == 1:
        return np.broadcast_to(rounded(numbers[0], of), of.shape)
    return rounded(np.array(numbers), of).reshape(of.shape)


def _number(word: str, of: Type) -> Any:
    if word in ("true", "false"):
        return word == "true"
    floating = of.element.startswith(("f", "bf"))
    if word.startswith("0x") and floating:
        width = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}.get(of.element)
        if width is None:
            raise Unknown(f"a constant of type {of.element}")
        bits = np.array([int(word, 16)], dtype=width)
        if of.element == "bf16":
            return (bits.astype(np.uint32) << 16).view(np.float32)[0]
        return bits.view(of.dtype)[0]
    return float(word) if floating else int(word, 0)
