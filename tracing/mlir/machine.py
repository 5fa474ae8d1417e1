"""Execute a kernel's IR on the CPU, one program after the other, on generated memory.

A tensor is one array, independent of the layout that assigns its elements to threads. So the IR before and
after a pass can be compared by its stores, if every operation is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracing.mlir.edits import functions
from tracing.mlir.generic import Block, Module, Operation, split
from tracing.mlir.memory import ByteMemory
from tracing.mlir.types import Type, Unknown, integer, integers, type_of

STEPS = 100_000  # operations that one evaluation may take
NOTHING = object()  # the value of a token
_ENDS = ("scf.yield", "tt.reduce.return", "tt.scan.return", "tt.return", "scf.condition")
_UNFORESEEN = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
OperationFunction = Callable[["Machine", Operation, list[Any]], Any]


@dataclass(frozen=True, slots=True)
class MachineLaunch:
    """The scalars that a kernel is launched with, and one of its programs."""

    scale: int  # magnitude of the scalars
    program: tuple[int, int, int]
    programs: tuple[int, int, int] = (3, 3, 3)
    scalars: Mapping[int, float] = field(default_factory=dict)  # known ones, by position of the argument
    steps: int = STEPS  # operations that it may take
    magnitude: float = 1.0  # of the floating-point numbers in memory


class Machine:
    """One evaluation of a module."""

    def __init__(
        self, module: Module, launch: MachineLaunch, operations: Mapping[str, OperationFunction]
    ) -> None:
        """Evaluate a module whose values have unique names."""
        self.launch = launch
        self.memory = ByteMemory(launch.magnitude)
        self.aliases = module.aliases
        self.pending: list[list[Callable[[], None]]] = [[]]  # copies in flight, by group; the last is open
        self._functions = {one.properties["sym_name"].strip('"'): one for one in functions(module)}
        self._operations = operations
        self._values: dict[str, Any] = {}
        self._steps = 0

    def run(self) -> dict[tuple[int, int], Any]:
        """The kernel's stores, by argument and index; raises Unknown."""
        public = [
            one for one in self._functions.values() if one.properties.get("sym_visibility") != '"private"'
        ]
        if len(public) != 1:
            raise Unknown(f"{len(public)} kernels in one module")
        self.call(public[0], _arguments(public[0], self.memory, self.launch))
        return self.memory.stored()

    def call(self, function: Operation, arguments: Sequence[Any]) -> list[Any]:
        """Run a function and return its results."""
        blocks = {block.label: block for block in function.regions[0]}
        block, given = function.regions[0][0], list(arguments)
        while True:
            end, results = self.block(block, given)
            if end.name in ("cf.br", "cf.cond_br"):
                target, given = _branch(end, results)
                block = blocks[target]
                continue
            return results

    def function(self, name: str) -> Operation:
        """A function by its name."""
        if name not in self._functions:
            raise Unknown(f"function {name}")
        return self._functions[name]

    def block(self, block: Block, arguments: Sequence[Any]) -> tuple[Operation, list[Any]]:
        """Run a block; return its terminator and the terminator's operands."""
        self._values.update(zip((name for name, _ in block.arguments), arguments, strict=True))
        for one in block.operations:
            operands = [self._values[name] for name in one.operands]
            if one is block.operations[-1]:
                return one, operands
            self._step(one, operands)
        raise Unknown("a block without an end")

    def region(self, one: Operation, number: int, arguments: Sequence[Any]) -> list[Any]:
        """Run a region of one block and return what it yields."""
        (block,) = one.regions[number]
        end, results = self.block(block, arguments)
        if end.name not in _ENDS:
            raise Unknown(end.name)
        return results

    def _step(self, one: Operation, operands: list[Any]) -> None:
        self._steps += 1
        if self._steps > self.launch.steps:
            raise Unknown("it takes too many steps")
        evaluate = self._operations.get(one.name) or self._operations.get(one.name.partition(".")[0])
        if evaluate is None:
            raise Unknown(one.name)
        try:
            value = evaluate(self, one, operands)
        except _UNFORESEEN as error:  # another release of Triton may print an operation differently
            raise Unknown(f"{one.name}: {type(error).__name__}: {error}") from None
        results = value if isinstance(value, list) else [value]
        self._values.update(zip(one.results, results, strict=False))


def _arguments(function: Operation, memory: ByteMemory, launch: MachineLaunch) -> list[Any]:
    attributes = split(function.properties.get("arg_attrs", "[]")[1:-1])
    made_up: list[Any] = []
    for number, (_, kind) in enumerate(function.regions[0][0].arguments):
        of = type_of(kind)
        known = attributes[number] if number < len(attributes) else ""
        if of.pointee:
            made_up.append(memory.pointer(number, of.pointee))
        elif number in launch.scalars:
            made_up.append(_scalar(launch.scalars[number], of))
        elif of.element == "i1":
            made_up.append(np.bool_(True))
        elif of.element.startswith("i"):
            made_up.append(of.dtype(_size(number, launch.scale, "tt.divisibility = 16" in known)))
        elif of.element.startswith(("f", "bf")):
            made_up.append(of.dtype(0.75 + 0.5 * number))
        else:
            raise Unknown(f"an argument of type {kind}")
    return made_up


def _scalar(value: float, of: Type) -> Any:
    try:
        return of.dtype(value)
    except _UNFORESEEN:  # as of an unsigned integer that the signed type does not have
        raise Unknown(f"{value} as {of.element}") from None


def _size(number: int, scale: int, divisible: bool) -> int:
    return scale + 16 * number if divisible else scale + 5 + 6 * number


def _branch(end: Operation, operands: Sequence[Any]) -> tuple[str, list[Any]]:
    if end.name == "cf.br":
        return end.successors[0], list(operands)
    one, true, false = integers(end.properties["operandSegmentSizes"])
    if bool(np.any(operands[0])):
        return end.successors[0], list(operands[one : one + true])
    return end.successors[1], list(operands[one + true : one + true + false])


def attribute(one: Operation, name: str, default: int | None = None) -> int:
    """An integer attribute; raises Unknown where there is none."""
    text = one.attribute(name)
    if text is None and default is None:
        raise Unknown(f"{one.name} without {name}")
    return default if text is None else integer(text)  # type: ignore[return-value]


def segments(one: Operation, operands: Sequence[Any]) -> list[list[Any]]:
    """The operand segments of an operation."""
    sizes = integers(one.properties["operandSegmentSizes"])
    ranges, start = [], 0
    for size in sizes:
        ranges.append(list(operands[start : start + size]))
        start += size
    return ranges
