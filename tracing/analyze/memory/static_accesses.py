"""Compute from a kernel's TTIR, without executing it, which elements a launch accesses.

Only unconditional accesses are evaluated: loads and stores outside of loops and branches, whose addresses and
masks follow from the grid, constants and integer arguments. Other accesses are unknown and not reported.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tracing.model import CopiedFunction

_LINE = re.compile(r"^    (?:(%[\w.$-]+) = )?([a-z_]+\.[\w.]+) ?(.*)$")
_ARGUMENT = re.compile(r"(%[\w.$-]+): ")
_POINTER = re.compile(r"!tt\.ptr<(\w+)")
_VALUE = re.compile(r"%[\w.$-]+(?:#\d+)?")
_INTEGER = re.compile(r"^(?:dense<)?(-?\d+|true|false)>? : ")
_SOURCE = re.compile(r'"([^"]*\.py)":(\d+)')
_LARGEST = 1 << 31  # the largest index; a larger one may wrap around


class _Pointer(NamedTuple):
    argument: str
    offset: Any  # elements from the argument's first one, a number or an array


@dataclass(frozen=True, slots=True)
class StaticAccess:
    """The elements that one load or store of one program accesses."""

    verb: str  # "loads", "stores"
    argument: str
    elements: npt.NDArray[np.int64]  # [n] from the argument's first one, sorted
    masked: bool
    program: tuple[int, int, int]
    line: int  # of the TTIR, from 1


def static_accesses(
    ttir: str, arguments: Sequence[str], values: Mapping[str, object], grid: tuple[int, int, int]
) -> Iterator[StaticAccess]:
    """The loads and stores of some programs, the first two and the last of each axis, as far as known.

    arguments -- names of those that were not made constant, in the order of the kernel's parameters
    values    -- of those that are no tensors
    """
    lines = _entry(ttir)
    names = _parameters(ttir)
    if len(names) != len(arguments):
        return
    for program in product(*(sorted({0, min(1, count - 1), count - 1}) for count in grid)):
        known: dict[str, Any] = {}
        for name, argument in zip(names, arguments, strict=True):
            value = values.get(argument)
            known[name] = _signless(value) if type(value) is int else _Pointer(argument, np.int64(0))
        yield from _Program(known, (program[0], program[1], program[2]), grid).run(lines)


def _signless(value: int) -> np.int64:
    # integers of IR have bits and no sign: one of 64 bits may be above the largest int64
    wrapped: np.int64 = np.int64((value + 2**63) % 2**64 - 2**63)
    return wrapped


def source_line(ttir: str, line: int, copied: Sequence[CopiedFunction] = ()) -> str:
    """The Python line that a line of TTIR was made from, `kernel.py:12`; empty: it is not known.

    copied -- functions of the user that the kernel's file has copies of
    """
    text = ttir.splitlines()[line - 1]
    for _ in range(8):  # an alias may name another one
        if named := _SOURCE.search(text):
            file, number = named[1], int(named[2])
            users = (one.of_user(file, number) for one in copied)
            file, number = next((one for one in users if one is not None), (file, number))
            return f"{file.rpartition('/')[2]}:{number}"
        alias = re.search(r"loc\((?:.*?)(#loc\d*)\)", text)
        defined = alias and re.search(rf"^{re.escape(alias[1])} = (.*)$", ttir, re.MULTILINE)
        if not defined:
            return ""
        text = defined[1]
    return ""


def divisible_by_16(ttir: str) -> list[bool]:
    """For each parameter of the kernel, whether it was compiled for multiples of 16."""
    parameters = _ARGUMENT.split(_header(ttir))[2::2]
    return ["tt.divisibility = 16" in text for text in parameters]


def pointed_types(ttir: str) -> list[str]:
    """For each parameter of the kernel, the type that it points to, "f16"; "": it is no pointer."""
    parameters = _ARGUMENT.split(_header(ttir))[2::2]
    return [match[1] if (match := _POINTER.match(text)) else "" for text in parameters]


def orders_programs(ttir: str) -> bool:
    """True if a kernel has atomics, by which programs can wait for one another."""
    return "tt.atomic_" in ttir


@functools.lru_cache(256)
def _entry(ttir: str) -> list[tuple[int, str | None, str, str]]:
    # number, result, operation and operands of each line of the entry block
    entry = []
    for number, line in enumerate(ttir.splitlines(), 1):
        if line.startswith("  ^") or line.startswith("  }"):
            break
        if match := _LINE.match(line):
            entry.append((number, match[1], match[2], match[3].partition(" loc(")[0]))
    return entry


@functools.lru_cache(256)
def _parameters(ttir: str) -> list[str]:
    return _ARGUMENT.findall(_header(ttir))


def _header(ttir: str) -> str:
    return next((line for line in ttir.splitlines() if line.startswith("  tt.func public")), "")


def _divided(a: Any, b: Any) -> Any:
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))  # towards zero


_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum, "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or,
    "arith.divsi": _divided, "arith.remsi": lambda a, b: a - b * _divided(a, b),
}  # fmt: skip
_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "slt": np.less, "sle": np.less_equal, "sgt": np.greater, "sge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal,
}  # fmt: skip


class _Program:
    # one program; a value that is not in `known` is not known

    def __init__(
        self, known: dict[str, Any], program: tuple[int, int, int], grid: tuple[int, int, int]
    ) -> None:
        self.known, self.program, self.grid = known, program, grid

    def run(self, lines: Sequence[tuple[int, str | None, str, str]]) -> Iterator[StaticAccess]:
        for number, result, name, text in lines:
            if name in ("tt.load", "tt.store"):
                yield from self._access(number, name, text)
            elif result is not None:
                value = self._value(name, text)
                if value is not None:
                    self.known[result] = value

    def _access(self, number: int, name: str, text: str) -> Iterator[StaticAccess]:
        operands = _VALUE.findall(text.partition(" : ")[0])
        pointer = self.known.get(operands[0]) if operands else None
        masks = operands[1:2] if name == "tt.load" else operands[2:3]
        if not isinstance(pointer, _Pointer) or any(mask not in self.known for mask in masks):
            return
        offsets: npt.NDArray[np.int64] = np.atleast_1d(pointer.offset)
        for mask in masks:
            offsets = offsets[np.broadcast_to(self.known[mask], offsets.shape)]
        if offsets.size and int(np.abs(offsets).max()) < _LARGEST:
            verb = "loads" if name == "tt.load" else "stores"
            yield StaticAccess(verb, pointer.argument, np.unique(offsets), bool(masks), self.program, number)

    def _value(self, name: str, text: str) -> Any:
        if name == "arith.constant":
            match = _INTEGER.match(text)
            if match is None:
                return None
            return np.bool_(match[1] == "true") if match[1].isalpha() else np.int64(int(match[1]))
        if name in ("tt.get_program_id", "tt.get_num_programs"):
            axis = "xyz".find(text[:1])
            return np.int64((self.program if name == "tt.get_program_id" else self.grid)[axis])
        if name == "tt.make_range":
            ends = {key: int(value) for key, value in re.findall(r"(start|end) = (\d+)", text)}
            return np.arange(ends["start"], ends["end"], dtype=np.int64)
        operands = [self.known.get(one) for one in _VALUE.findall(text.partition(" : ")[0])]
        if not operands or any(one is None for one in operands):
            return None
        return self._computed(name, text, operands)

    def _computed(self, name: str, text: str, operands: list[Any]) -> Any:
        first = operands[0]
        if name == "tt.addptr" and isinstance(first, _Pointer):
            return _Pointer(first.argument, first.offset + operands[1])
        if name in ("tt.splat", "tt.broadcast"):
            return _mapped(first, lambda array: np.broadcast_to(array, _shape(text)))
        if name == "tt.expand_dims":
            axis = int(text.partition("axis = ")[2].split(" ")[0])
            return _mapped(first, lambda array: np.expand_dims(array, axis))
        if any(isinstance(one, _Pointer) for one in operands):
            return None
        if name == "arith.cmpi":
            compared = _COMPARED.get(text.partition(",")[0])
            return compared(*operands) if compared else None
        if name in ("arith.extsi", "arith.trunci"):
            return first
        if name == "arith.select":
            return np.where(*operands)
        binary = _BINARY.get(name)
        if binary is None or (name in ("arith.divsi", "arith.remsi") and np.any(operands[1] == 0)):
            return None
        value = binary(*operands)
        return value if value.dtype == np.bool_ or int(np.abs(value).max(initial=0)) < _LARGEST else None


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, _Pointer):
        return _Pointer(value.argument, change(value.offset))
    return change(value)


def _shape(text: str) -> tuple[int, ...]:
    last = re.findall(r"tensor<((?:\d+x)+)", text)[-1]
    return tuple(int(size) for size in last.split("x") if size)
