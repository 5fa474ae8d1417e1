"""Compute operations of tt, scf, arith and math."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tracing.mlir.arithmetic import computed, library
from tracing.mlir.generic import Operation
from tracing.mlir.machine import NOTHING, Machine, OperationFunction, attribute, segments
from tracing.mlir.memory import size_of
from tracing.mlir.types import Unknown, constant, integers, rounded, type_of


def _elementwise(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    if any(value is NOTHING for value in operands):
        return NOTHING  # one token or another
    return computed(one, operands)


def _library(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    return library(one, operands)


def _constant(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    return constant(one.properties["value"])


def _poison(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    kind = type_of(one.result_types[0])
    return NOTHING if kind.element.endswith("token") else np.zeros(kind.shape, kind.dtype)[()]


def no_value(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    """No value for any result: the operation has no effect on one program."""
    return [NOTHING] * len(one.results)


def operands_passed(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    """The operands as results: the operation changes types or layouts only."""
    return list(operands[: len(one.results)])


def _for(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    start, stop, step, *carried = operands
    for at in range(int(start), int(stop), max(int(step), 1)):
        carried = machine.region(one, 0, [np.asarray(start).dtype.type(at), *carried])
    return carried


def _if(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    taken = 0 if bool(np.any(operands[0])) else 1
    if not one.regions[taken] or not one.regions[taken][0].operations:
        return []
    return machine.region(one, taken, [])


def _while(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    carried = operands
    while True:
        condition, *carried = machine.region(one, 0, carried)
        if not bool(np.any(condition)):
            return carried
        carried = machine.region(one, 1, carried)


def _call(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    return machine.call(machine.function(one.properties["callee"].strip('@"')), operands)


def _program(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    return np.int32(machine.launch.program[attribute(one, "axis")])


def _programs(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    return np.int32(machine.launch.programs[attribute(one, "axis")])


def _range(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    return np.arange(attribute(one, "start"), attribute(one, "end"), dtype=np.int32)


def _shaped(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    return np.broadcast_to(operands[0], type_of(one.result_types[0]).shape)


def _unsplat(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    return np.asarray(operands[0]).ravel()[0]


def _expanded(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    return np.expand_dims(operands[0], attribute(one, "axis"))


def _reshaped(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    if one.attribute("allow_reorder"):
        raise Unknown("a reshape that may reorder")
    return np.reshape(operands[0], type_of(one.result_types[0]).shape)


def transposed(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    """A tensor, or a buffer, with its axes in another order."""
    return np.transpose(operands[0], integers(one.properties["order"]))


def _joined(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    return np.stack(np.broadcast_arrays(*operands), axis=-1)


def _split(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    return [operands[0][..., 0], operands[0][..., 1]]


def _advanced(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    pointee = type_of(one.result_types[0]).pointee
    return np.asarray(operands[0]) + np.asarray(operands[1]).astype(np.int64) * size_of(pointee or "")


def _load(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    (addresses,), mask, other = segments(one, operands)
    kind = type_of(one.result_types[0])
    loaded = machine.memory.load(np.broadcast_to(addresses, kind.shape), kind.element)
    if not mask:
        return loaded
    return np.where(mask[0], loaded, other[0] if other else kind.dtype(0))


def _store(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    addresses, values, *mask = operands
    pointee = type_of(one.operand_types[0]).pointee
    if pointee is None:
        raise Unknown("a store that is not through pointers")
    store(machine, addresses, values, mask[0] if mask else True, pointee)
    return []


def store(machine: Machine, addresses: Any, values: Any, mask: Any, pointee: str) -> None:
    """Store the elements whose mask is set."""
    where, addresses, values = np.broadcast_arrays(mask, addresses, values)
    machine.memory.store(addresses[where], values[where], pointee)


def _atomic(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    addresses, values, *mask = operands
    update, kind = _UPDATES.get(attribute(one, "atomic_rmw_op")), type_of(one.result_types[0])
    if update is None:
        raise Unknown("an atomic update of another kind")
    where, addresses, values = np.broadcast_arrays(mask[0] if mask else True, addresses, values)
    old = np.zeros(where.shape, kind.dtype)
    for at in zip(*np.nonzero(np.atleast_1d(where)), strict=True):
        index = at if where.shape else ()
        old[index] = machine.memory.load(addresses[index], kind.element)
        machine.memory.store(addresses[index], rounded(update(old[index], values[index]), kind), kind.element)
    return old[()]


_UPDATES: Mapping[int, Any] = {  # Source: RMWOp of Triton's TritonAttrDefs.td
    1: np.bitwise_and, 2: np.bitwise_or, 3: np.bitwise_xor, 4: np.add, 5: np.add, 6: np.maximum,
    7: np.minimum, 10: lambda old, new: new,
}  # fmt: skip


def dot(a: Any, b: Any, c: Any, result: str) -> Any:
    """A matrix product plus an accumulator, rounded once."""
    exact = np.asarray(a).astype(np.float64) @ np.asarray(b).astype(np.float64)
    return rounded(exact + np.asarray(c).astype(np.float64), type_of(result))


def _dot(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    a, b, c = operands[:3]
    return dot(a, b, c, one.result_types[0])


def _reduced(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    axis = attribute(one, "axis")
    parts = [np.moveaxis(np.asarray(one_of_them), axis, 0) for one_of_them in operands]
    while len(parts[0]) > 1:
        even = len(parts[0]) // 2 * 2
        pairs = [part[:even:2] for part in parts] + [part[1:even:2] for part in parts]
        combined = machine.region(one, 0, pairs)
        rest = [part[even:] for part in parts]
        parts = [
            np.concatenate([new, old]) if len(old) else new for new, old in zip(combined, rest, strict=True)
        ]
    return [part[0] for part in parts]


def _scanned(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    axis, backwards = attribute(one, "axis"), bool(attribute(one, "reverse", 0))
    parts = [np.moveaxis(np.asarray(part), axis, 0) for part in operands]
    parts = [part[::-1] for part in parts] if backwards else parts
    rows = [[part[0] for part in parts]]
    for at in range(1, len(parts[0])):
        rows.append(machine.region(one, 0, [*rows[-1], *(part[at] for part in parts)]))
    stacked = [np.stack(column) for column in zip(*rows, strict=True)]
    stacked = [column[::-1] for column in stacked] if backwards else stacked
    return [np.moveaxis(column, 0, axis) for column in stacked]


TENSORS: Mapping[str, OperationFunction] = {
    "arith": _elementwise,
    "math": _elementwise,
    "arith.constant": _constant,
    "ub.poison": _poison,
    "tt.extern_elementwise": _library,
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "tt.call": _call,
    "tt.get_program_id": _program,
    "tt.get_num_programs": _programs,
    "tt.make_range": _range,
    "tt.splat": _shaped,
    "tt.broadcast": _shaped,
    "tt.unsplat": _unsplat,
    "tt.expand_dims": _expanded,
    "tt.reshape": _reshaped,
    "tt.trans": transposed,
    "tt.join": _joined,
    "tt.split": _split,
    "tt.addptr": _advanced,
    "tt.ptr_to_int": operands_passed,
    "tt.int_to_ptr": operands_passed,
    "tt.load": _load,
    "tt.store": _store,
    "tt.atomic_rmw": _atomic,
    "tt.dot": _dot,
    "tt.reduce": _reduced,
    "tt.scan": _scanned,
    "tt.assert": no_value,
    "tt.print": no_value,
    "tt.assume": no_value,
    "llvm.intr.assume": no_value,
    **dict.fromkeys(
        ("tt.bitcast", "tt.fp_to_fp", "tt.clampf", "tt.mulhiui", "tt.precise_divf", "tt.precise_sqrt"),
        _elementwise,
    ),
}
