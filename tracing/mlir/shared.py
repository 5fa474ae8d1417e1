"""Compute operations of ttg, ttng and amdg: layouts, shared and tensor memory, copies in flight.

A copy to shared memory becomes visible at its wait, as on the device: a read after too early a wait returns
the old contents. Barriers between threads have no effect here, because a program is one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from tracing.mlir.generic import Operation
from tracing.mlir.machine import NOTHING, Machine, OperationFunction, attribute, segments
from tracing.mlir.memory import size_of
from tracing.mlir.tensors import TENSORS, dot, no_value, operands_passed, store, transposed
from tracing.mlir.types import Unknown, integers, type_of

UNWRITTEN = 77  # initial content of shared memory


def _allocated(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    kind = type_of(one.result_types[0])
    values = [value for value in operands if value is not NOTHING]
    buffer = np.full(kind.shape, UNWRITTEN, kind.dtype)
    if values:
        buffer[...] = np.reshape(values[0], kind.shape)
    return [buffer, *[NOTHING] * (len(one.results) - 1)]


def _indexed(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    buffer, *index = operands
    return buffer[tuple(int(at) for at in index)]


def _sliced(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    offsets, shape = integers(one.properties["offsets"]), type_of(one.result_types[0]).shape
    return operands[0][tuple(slice(at, at + size) for at, size in zip(offsets, shape, strict=True))]


def _reshaped(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    view = np.reshape(operands[0], type_of(one.result_types[0]).shape)
    if not np.shares_memory(view, operands[0]):
        raise Unknown("a reshape of memory that is not contiguous")
    return view


def _read(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    return [np.array(operands[0]), *[NOTHING] * (len(one.results) - 1)]


def _write(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    values, buffer = operands[:2]
    buffer[...] = values
    return []


def _copy(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    (addresses,), (buffer,), mask, other = segments(one, operands)[:4]
    kind = type_of(one.operand_types[1])
    loaded = machine.memory.load(addresses, kind.element)
    if mask:
        loaded = np.where(mask[0], loaded, other[0] if other else kind.dtype(0))
    machine.pending[-1].append(partial(np.copyto, buffer, loaded))
    return NOTHING


def _commit(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    machine.pending.append([])
    return NOTHING


def _wait(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    left = attribute(one, "num")
    while len(machine.pending) - 1 > left:
        for arrive in machine.pending.pop(0):
            arrive()
    return [NOTHING] * len(one.results)


def _group_dot(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    a, b, c, *use = [value for value in operands if value is not NOTHING]
    if use and not bool(np.any(use[0])):
        c = np.zeros_like(c)
    return dot(a, b, c, one.result_types[0])


def _tensor_write(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    buffer, values, *use = [value for value in operands if value is not NOTHING]
    if not use or bool(np.any(use[0])):
        buffer[...] = values
    return [NOTHING] * len(one.results)


def _tensor_dot(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    (a,), (b,), (d,), _, (add,), (use,) = segments(one, operands)[:6]
    if bool(np.any(use)):
        start = d if bool(np.any(add)) else np.zeros_like(d)
        d[...] = dot(a, b, start, one.operand_types[2])
    return [NOTHING] * len(one.results)


def _buffer_load(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    (base,), (offsets,), _, mask, other = segments(one, operands)[:5]
    kind = type_of(one.result_types[0])
    loaded = machine.memory.load(base + offsets.astype(np.int64) * size_of(kind.element), kind.element)
    return np.where(mask[0], loaded, other[0] if other else kind.dtype(0)) if mask else loaded


def _buffer_store(machine: Machine, one: Operation, operands: list[Any]) -> Any:
    (values,), (base,), (offsets,), _, mask = segments(one, operands)[:5]
    kind = type_of(one.operand_types[0])
    addresses = base + offsets.astype(np.int64) * size_of(kind.element)
    store(machine, addresses, values, mask[0] if mask else True, kind.element)
    return []


OPERATIONS: Mapping[str, OperationFunction] = {
    **TENSORS,
    "ttg.convert_layout": operands_passed,
    "amdg.in_thread_transpose": operands_passed,
    "ttg.local_alloc": _allocated,
    "ttg.local_load": _read,
    "ttg.local_store": _write,
    "ttg.memdesc_index": _indexed,
    "ttg.memdesc_subslice": _sliced,
    "ttg.memdesc_trans": transposed,
    "ttg.memdesc_reshape": _reshaped,
    "ttg.async_copy_global_to_local": _copy,
    "ttg.async_commit_group": _commit,
    "ttg.async_wait": _wait,
    "ttng.warp_group_dot": _group_dot,
    "ttng.warp_group_dot_wait": operands_passed,
    "ttng.tmem_alloc": _allocated,
    "ttng.tmem_load": _read,
    "ttng.tmem_store": _tensor_write,
    "ttng.tc_gen5_mma": _tensor_dot,
    "amdg.buffer_load": _buffer_load,
    "amdg.buffer_store": _buffer_store,
    **dict.fromkeys(
        (
            "ttg.local_dealloc", "ttg.barrier", "ttng.fence_async_shared", "ttng.init_barrier",
            "ttng.inval_barrier", "ttng.wait_barrier", "ttng.arrive_barrier", "gpu.barrier",
            "rocdl.sched.barrier", "rocdl.s.barrier", "rocdl.s.setprio",
        ),
        no_value,
    ),
}  # fmt: skip
