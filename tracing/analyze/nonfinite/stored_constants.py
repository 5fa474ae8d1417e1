"""Whether the NaN or inf that a kernel stores is a constant of its code, as the -inf of a mask.

Follows stored values backwards through a kernel's TTIR. What it does not know may compute such a value.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

Share: TypeAlias = Literal["none", "all", "some"]  # of the values of one kind that a kernel stores

_LINE = re.compile(r'^ *(?:(%[\w.$-]+)(?::\d+)? = )?"?([a-z_]+\.[\w.]+)"? ?(.*)$')
_VALUE = re.compile(r"%[\w.$-]+")
# MLIR prints the bits of no other constants
_BITS = re.compile(r"(?:dense<)?0x([0-9A-F]{1,16})>? : (?:tensor<(?:\d+x)+)?(bf16|f16|f32|f64)\b")
_MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}  # bits
# operations whose results are elements of their operands, and of which
_FORWARDED = dict.fromkeys(
    (
        "tt.splat", "tt.unsplat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.cat",
        "tt.join", "tt.split", "arith.extf", "arith.negf", "math.absf", "arith.maxnumf", "arith.minnumf",
        "arith.maximumf", "arith.minimumf",
    ),
    slice(None),
) | {"arith.select": slice(1, None)}  # fmt: skip
_CARRIED = ("arith.addf", "arith.subf", "arith.mulf", "arith.truncf", "math.fma", "tt.fp_to_fp")
_ADDRESSES = ("tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims")
_LARGEST = 65504.0  # of float16


class _Operation(NamedTuple):
    name: str
    operands: Sequence[str]
    text: str  # what follows its name


_PARAMETER = _Operation("", (), "")


class _Store(NamedTuple):
    argument: str | None  # None: it is not known
    value: str | None  # None: it is computed by the store


def stored_constants(
    ttir: str, argument: str, kind: Literal["nan", "inf"], given: Sequence[str] = ()
) -> Share:
    """Which of the NaN, or of the infinite values, that a kernel stores to an argument are its constants.

    given -- arguments with a number of this kind, which count as constants

    "all": it stores no other one, if every value that it reads is finite; "some": it may compute one, too
    """
    defined, stores = _read(ttir)
    defined = {**defined, **{f"%{name}": _Operation("", (), kind) for name in given}}
    reached, computed = False, False
    for store in stores:
        if store.argument in (argument, None):
            constant, other = (False, True) if store.value is None else _origins(defined, store.value, kind)
            reached, computed = reached or constant, computed or other
    return "none" if not reached else "some" if computed else "all"


@functools.lru_cache(8)
def _read(ttir: str) -> tuple[dict[str, _Operation], list[_Store]]:
    # what defines each value of the kernel, and its stores
    defined: dict[str, _Operation] = {}
    writes = list[_Operation]()
    for line in _kernel(ttir):
        if match := _LINE.match(line):
            text = match[3].partition(" loc(")[0]
            one = _Operation(match[2], _VALUE.findall(text), text)
            if match[1]:
                defined[match[1]] = one
            if one.name.startswith(("tt.store", "tt.atomic", "tt.descriptor_", "tt.call")):
                writes.append(one)
    return defined, [_store(defined, one) for one in writes if "load" not in one.name]


def _kernel(ttir: str) -> Iterator[str]:
    # the lines of the public function
    inside = False
    for line in ttir.splitlines():
        inside = inside or line.startswith("  tt.func public")
        if inside and line.startswith("  }"):
            return
        if inside:
            yield line


def _store(defined: dict[str, _Operation], one: _Operation) -> _Store:
    if one.name != "tt.store" or len(one.operands) < 2:
        return _Store(None, None)
    return _Store(_argument(defined, one.operands[0]), one.operands[1])


def _argument(defined: dict[str, _Operation], address: str) -> str | None:
    # the parameter from which an address is computed
    seen = set[str]()
    while (one := defined.get(address)) is not None:
        if one.name not in _ADDRESSES or not one.operands or address in seen:
            return None
        seen.add(address)
        address = one.operands[0]
    return address.removeprefix("%")


def _origins(defined: dict[str, _Operation], value: str, kind: Literal["nan", "inf"]) -> tuple[bool, bool]:
    # whether such a constant reaches a value, and whether the value may be one otherwise
    constant, computed = False, False
    seen, waiting = set[str](), [value]
    while waiting:
        for one in _forwarded(defined, waiting.pop(), seen):
            constant = constant or _kind(one) == kind
            if one.name in _CARRIED:
                computed = computed or one.name != "arith.truncf" or not _is_small(defined, one.operands)
                waiting += one.operands
            elif one.name == "tt.load":
                address, *masked = one.operands or ("",)
                computed = computed or _argument(defined, address) is None
                waiting += masked[1:]  # what it gives where the mask is false
            else:
                computed = computed or not _is_finite(one)
    return constant, computed


def _forwarded(defined: dict[str, _Operation], value: str, seen: set[str]) -> Iterator[_Operation]:
    # the operations whose elements a value has; those of values that were `seen` are left out
    waiting = [value]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        one = defined.get(name, _PARAMETER)
        if one.name in _FORWARDED:
            waiting += one.operands[_FORWARDED[one.name]]
        else:
            yield one


def _kind(one: _Operation) -> Literal["", "nan", "inf"]:
    if one.name == _PARAMETER.name:  # with such a number, if it is given
        return "nan" if one.text == "nan" else "inf" if one.text == "inf" else ""
    match = _BITS.match(one.text) if one.name == "arith.constant" else None
    return "" if match is None else "nan" if int(match[1], 16) & ((1 << _MANTISSA[match[2]]) - 1) else "inf"


def _is_finite(one: _Operation) -> bool:
    # of an operation without operands that are floats
    if one.name in ("arith.sitofp", "arith.uitofp"):
        return re.search(r"\bf(8\w*|16)>?$", one.text.strip()) is None  # 70000 is infinite in float16
    return one.name in (_PARAMETER.name, "arith.constant")


def _is_small(defined: dict[str, _Operation], values: Sequence[str]) -> bool:
    # True if they are constants that are finite, infinite or NaN in each type of float
    seen = set[str]()
    constants = (one for value in values for one in _forwarded(defined, value, seen))
    return all(_kind(one) or _magnitude(one) <= _LARGEST for one in constants)


def _magnitude(one: _Operation) -> float:
    # of a constant; infinite: it is none, or its value is not known
    number = re.match(r"(?:dense<)?(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)>? : ", one.text)
    return abs(float(number[1])) if one.name == "arith.constant" and number else float("inf")
