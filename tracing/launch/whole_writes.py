"""Prove that a launch overwrites every byte of a tensor, without reading any of them.

The proof follows a `tt.store` of the kernel's TTIR. Its address and its mask must be sums of independent
variables, see `affine`; integer arguments have the values of the launch. A store writes every element if

- it is executed unconditionally: in the body of the entry, or in loops that have at least one iteration;
- each comparison of its mask bounds an index of its own: a sum that takes every value from 0 on;
- its address, a sum of strides times such indices and other variables, takes every value from 0 to the number
  of elements. The elements of the tensor must be dense in memory, in any order of dimensions.

No operation may wrap around in its integer type. Not proven: several stores that together write one tensor;
stores through descriptors and block pointers; addresses that depend on loaded or loop-carried values; tensors
that share a storage; kernels with inline assembly, calls, or a return before the end. A launch whose
`tt.assert` fails writes less: then CUDA executes nothing after it in that process.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tracing.launch.affine import Form, Variable, VariableKind, quotient, remainder, written
from tracing.launch.launch_site import Grid
from tracing.launch.roles import parameters
from tracing.launch.ttir import Op, TtirModule, parse
from tracing.model import Argument
from tracing.views import dense, element_bytes

_DIVIDES = {
    "arith.divsi": quotient,
    "arith.divui": quotient,
    "arith.remsi": remainder,
    "arith.remui": remainder,
}
_CONSTANT = re.compile(r"(?:dense<)?(true|-?\d+)>? : ")
_LIBRARIES = ("__nv_", "__ocml_")  # the functions of these return


@dataclass(frozen=True, slots=True)
class _Address:
    """A pointer into the memory of an argument."""

    argument: int
    elements: Form  # after the argument's own address
    size: int  # bytes of an element


@dataclass(frozen=True, slots=True)
class _Mask:
    """True where all of some sums are below 0."""

    below_zero: frozenset[Form] = frozenset()


_Value: TypeAlias = Form | _Address | _Mask


class WholeWrites:
    """Proves which tensors the launches of one kernel overwrite as a whole."""

    def __init__(self, ttir: str, types: Mapping[str, Any]) -> None:
        """Read the kernel's TTIR.

        types -- name -> type of all the kernel's arguments, as for `roles.declared`

        Raises ValueError if MLIR refuses the text.
        """
        module = parse(ttir)
        self._names = list(parameters(types))
        self._completes = len(self._names) == len(module.types) and _completes(module)
        self._module = replace(module, ops=_needed_by_stores(module) if self._completes else {})

    def of(self, grid: Grid, args: Sequence[Argument]) -> set[str]:
        """The arguments of a launch that it does not read, and of whose tensors it overwrites every byte.

        args -- of the launch, with their roles

        Cost: about 20 µs for each operation on which the address or mask of a store depends.
        """
        known = {arg.name: arg for arg in args}
        passed = [known.get(name) for name in self._names]
        if not self._completes or any(arg.addresses for arg in args):
            return set()
        if not all((one := passed[position]) and one.tensor for position in self._module.pointers):
            return set()  # memory that is not known may be a tensor's
        whole = set()
        for address, mask in _Walk(self._module, grid, passed).stores():
            arg = passed[address.argument]
            assert arg is not None and arg.tensor is not None
            needed = math.prod(arg.tensor.shape) * element_bytes(arg.tensor.dtype)
            count = written(address.elements, mask.below_zero) or 0
            if arg.declared == "out" and dense(arg.tensor) and count * address.size >= needed:
                whole.add(arg.name)
        return whole


def _needed_by_stores(module: TtirModule) -> dict[int, list[Op]]:
    # the entry's operations and those of its loops: stores, loops, and what their operands are computed from
    regions: dict[int, list[Op]] = {}
    to_visit = [module.functions[module.entry]]
    while to_visit:
        region = to_visit.pop()
        regions[region] = module.ops[region]
        to_visit += [op.regions[0] for op in regions[region] if op.name == "scf.for"]
    made_by = {result: op for ops in regions.values() for op in ops for result in op.results}
    values = [value for ops in regions.values() for op in ops for value in _followed(op)]
    needed: set[int] = set()
    while values:
        value = values.pop()
        if value not in needed and value in made_by:
            values += made_by[value].operands
        needed.add(value)
    return {
        region: [op for op in ops if _followed(op) or needed.intersection(op.results)]
        for region, ops in regions.items()
    }


def _followed(op: Op) -> Sequence[int]:
    # address and mask of a store; start, stop and step of a loop
    if op.name == "tt.store":
        return op.operands[0], *op.operands[2:]
    return op.operands[:3] if op.name == "scf.for" else ()


def _completes(module: TtirModule) -> bool:
    # no program of a launch returns early, and all attributes are known
    ops = (op for region in module.ops.values() for op in region)
    blocks = module.blocks[module.functions[module.entry]]
    return len(blocks) == 1 and bool(module.printed) and all(map(_passes, ops))


def _passes(op: Op) -> bool:
    if op.name == "tt.extern_elementwise":
        return op.callee is not None and op.callee.startswith(_LIBRARIES)
    known = op.name.startswith(("arith.", "math.", "scf.", "tt.", "ub."))
    return known and op.name not in ("tt.call", "tt.elementwise_inline_asm")


class _Walk:
    """The entry of a kernel, with the arguments of one launch."""

    def __init__(self, module: TtirModule, grid: Grid, passed: Sequence[Argument | None]) -> None:
        self._module, self._grid = module, grid
        self._entry = module.functions[module.entry]
        self._values: dict[int, _Value | None] = {}
        entered = module.blocks[self._entry][0]
        for position, (value, kind, arg) in enumerate(zip(entered, module.types, passed, strict=True)):
            size = _pointee_bytes(kind)
            if size is not None:
                self._values[value] = _Address(position, Form(0), size)
            elif arg is not None and type(arg.value) is int:
                self._values[value] = _without_wrap(Form(arg.value), kind)

    def stores(self) -> Iterator[tuple[_Address, _Mask]]:
        """The stores that every program executes."""
        return self._region(self._entry)

    def _region(self, region: int) -> Iterator[tuple[_Address, _Mask]]:
        for op in self._module.ops[region]:
            if op.name == "tt.store":
                address, mask = (self._values.get(op.operands[0]), self._mask(op))
                if isinstance(address, _Address) and isinstance(mask, _Mask):
                    yield address, mask
            elif op.name == "scf.for":
                counter = self._module.blocks[op.regions[0]][0][0]
                self._values[counter] = counted = self._counted(counter, op)
                if counted is not None:
                    yield from self._region(op.regions[0])
            elif len(op.results) == 1:
                self._values[op.results[0]] = _without_wrap(self._value(op), op.types[0])

    def _mask(self, store: Op) -> _Value | None:
        return self._values.get(store.operands[2]) if len(store.operands) > 2 else _Mask()

    def _counted(self, counter: int, loop: Op) -> Form | None:
        # the counter of a loop that has an iteration; it does not wrap after the last one
        start, stop, step = (_number(self._values.get(value)) for value in loop.operands[:3])
        if start is None or stop is None or step is None or start < 0 or step < 1:
            return None
        count = -(-(stop - start) // step)
        fits = count > 0 and start + step * count < 1 << 31
        return _variable("iteration", counter, count) * step + Form(start) if fits else None

    def _value(self, op: Op) -> _Value | None:
        given = [self._values.get(value) for value in op.operands]
        text = self._module.printed.get(op.results[0], "")
        match op.name, given:
            case "arith.constant", []:
                return _constant(text)
            case "tt.get_program_id" | "tt.get_num_programs", []:
                return self._program(op.name, "xyz".find(text[:1]))
            case "tt.make_range", []:
                return _range(_attribute(text, "start"), _attribute(text, "end"))
            case "tt.expand_dims", [value]:
                return _expanded(value, _attribute(text, "axis"))
            case "tt.splat" | "tt.broadcast", [value]:
                return value
            case "tt.bitcast", [_Address() as address] if _pointee_bytes(op.types[0]) == address.size:
                return address
            case "tt.addptr", [_Address(argument, elements, size), Form() as offset]:
                return _Address(argument, elements + offset, size)
            case "arith.andi", [_Mask(a), _Mask(b)]:
                return _Mask(a | b)
            case _, [Form() as number]:
                return _converted(op.name, number)
            case _, [Form() as a, Form() as b]:
                return _compared(text.partition(",")[0], a, b) if op.name == "arith.cmpi" else _sum(op, a, b)
        return None

    def _program(self, name: str, axis: int) -> Form | None:
        if axis < 0:
            return None
        count = self._grid[axis]
        return _variable("program", axis, count) if name == "tt.get_program_id" else Form(count)


def _variable(kind: VariableKind, number: int, extent: int) -> Form:
    return Form.of(0, {Variable(kind, number, extent): 1})


def _number(value: _Value | None) -> int | None:
    return value.constant if isinstance(value, Form) and not value.terms else None


def _range(start: int | None, end: int | None) -> Form | None:
    return None if start is None or end is None else _variable("axis", 0, end - start) + Form(start)


@functools.lru_cache(1 << 12)
def _attribute(text: str, name: str) -> int | None:
    number = re.search(rf"\b{name} = (\d+) : i32", text)
    return int(number[1]) if number else None


@functools.lru_cache(1 << 12)
def _constant(text: str) -> _Value | None:
    # of a tensor, if all elements are equal
    number = _CONSTANT.match(text)
    if number is None:
        return None
    return _Mask() if number[1] == "true" else Form(int(number[1]))


def _expanded(value: _Value | None, axis: int | None) -> _Value | None:
    if axis is None:
        return None
    match value:
        case Form():
            return value.expanded(axis)
        case _Address(argument, elements, size):
            return _Address(argument, elements.expanded(axis), size)
        case _Mask(below_zero):
            return _Mask(frozenset(form.expanded(axis) for form in below_zero))
    return None


def _converted(name: str, number: Form) -> Form | None:
    # another integer type that holds the number, too
    if name == "arith.extui" and number.low < 0:
        return None
    return number if name in ("arith.extsi", "arith.extui", "arith.trunci") else None


def _sum(op: Op, a: Form, b: Form) -> Form | None:
    if op.name == "arith.addi":
        return a + b
    if op.name == "arith.subi":
        return a + b * -1
    if op.name == "arith.muli":
        factor, other = (a, b) if not a.terms else (b, a)
        return other * factor.constant if not factor.terms else None
    divide, divisor = _DIVIDES.get(op.name), _number(b)
    return divide(a, divisor) if divide and divisor and divisor > 0 and a.low >= 0 else None


def _compared(predicate: str, a: Form, b: Form) -> _Mask | None:
    order = predicate.removeprefix("s").removeprefix("u")
    if order not in ("lt", "le", "gt", "ge") or (predicate.startswith("u") and min(a.low, b.low) < 0):
        return None
    less, greater = (a, b) if order.startswith("l") else (b, a)
    return _Mask(frozenset({less + greater * -1 + Form(-1 if order.endswith("e") else 0)}))


def _without_wrap(value: _Value | None, kind: str) -> _Value | None:
    # an integer wraps around where its type does not hold it
    if not isinstance(value, Form):
        return value
    limit = _limit(kind)
    return value if -limit <= value.low and value.high < limit else None


@functools.lru_cache(1 << 12)
def _limit(kind: str) -> int:
    # the least number that a signed integer type does not hold
    bits = re.search(r"i(\d+)>?$", kind)
    return 1 << int(bits[1]) - 1 if bits else 0


@functools.lru_cache(1 << 12)
def _pointee_bytes(kind: str) -> int | None:
    bits = re.search(r"!tt\.ptr<(?:bf|f|i)(\d+)", kind)
    return max(1, int(bits[1]) // 8) if bits else None
