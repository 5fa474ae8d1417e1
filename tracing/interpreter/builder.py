"""The operations of a kernel, as the interpreter computes them on NumPy arrays."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.language.semantic import TritonSemantic

from tracing.errors import Problem
from tracing.interpreter import directed_rounding as directed
from tracing.interpreter import libdevice
from tracing.interpreter.batch.batch_builder import BatchBuilder, for_each_program, for_one_program
from tracing.interpreter.batch.batched_array import each_program
from tracing.interpreter.conversions import as_integer, fused, to_odd
from tracing.interpreter.floats import (
    FLOAT8,
    as_float8,
    as_half,
    from_float8,
    is_bf16,
    rounded,
    through_float32,
    toward_zero,
    widened,
)
from tracing.interpreter.kernel_line import kernel_line, kernel_name
from tracing.interpreter.pointers import as_cast, as_chosen
from tracing.interpreter.roundings import OtherRoundings
from tracing.upstream.patch import replaced
from tracing.upstream.triton.interpreter import (
    ATOMIC_OP,
    DESCRIPTOR_REDUCE_KIND,
    MEM_SEMANTIC,
    MEM_SYNC_SCOPE,
    PROPAGATE_NAN,
    ROUNDING_MODE,
    TensorHandle,
    numpy_dtype,
)


def _with(attribute: str, value: object, method: Callable[..., Any]) -> Callable[..., Any]:
    # the attribute of the builder while the method runs
    @functools.wraps(method)
    def called(self: Any, *operands: Any, **options: Any) -> Any:
        setattr(self, attribute, value)
        try:
            return method(self, *operands, **options)
        finally:
            setattr(self, attribute, getattr(type(self), attribute))

    return called


def _rounded_otherwise(method: Callable[..., Any]) -> Callable[..., Any]:
    # the method of some handles, and perhaps of the function that it applies to their arrays
    @functools.wraps(method)
    def called(self: Any, *operands: Any) -> Any:
        result = method(self, *operands)
        if self.roundings is None:
            return result
        handles = [one for one in operands if isinstance(one, TensorHandle)]
        return self.roundings.of(result, operands[-1] if len(handles) < len(operands) else None, handles)

    return called


_atomic = functools.partial(_with, "masked", None)
_load_in_order = _with("order", "acquire", BatchBuilder.create_masked_load)


class AssertFails(AssertionError):
    """A tl.device_assert or tl.assume of a kernel is false."""


class DeviceBuilder(BatchBuilder):
    """Triton's builder, overridden where a GPU computes something else."""

    order: Any = "plain"  # tracing.interpreter.gates.MemoryOrder of the load or store that is executed
    accessed: Any = None  # the dtype of its pointers; None: another builder executes it
    masked: bool | None = True  # it has a mask; None: an atomic, whose mask is there in any case
    roundings: OtherRoundings | None = None  # None: each operation is rounded as the interpreter does
    undefined_byte = 0  # each byte of what a load without `other` gives where its mask is false
    outside_byte = 0  # each byte of what a load from memory of no tensor gives

    def __init__(self) -> None:
        super().__init__()
        # Backends check integers for overflow only where a kernel is compiled with debug=True. It takes a
        # fifth of the time.
        options: Any = self.options  # type: ignore[has-type, unused-ignore]
        # bf16x3 and bf16x6 are as exact as ieee, as which the interpreter computes all
        products = (*options.allowed_dot_input_precisions, "bf16x3", "bf16x6")
        self.options = dataclasses.replace(
            options, sanitize_overflow=False, allowed_dot_input_precisions=products
        )

    binary_op = _rounded_otherwise(through_float32(BatchBuilder.binary_op))
    unary_op = _rounded_otherwise(through_float32(BatchBuilder.unary_op))
    ternary_op = _rounded_otherwise(through_float32(BatchBuilder.ternary_op))
    create_erf = _rounded_otherwise(through_float32(BatchBuilder.create_erf))
    create_rsqrt = _rounded_otherwise(through_float32(BatchBuilder.create_rsqrt))

    def get_bf16(self, value: float) -> Any:  # upstream since 3.9
        return rounded(self.get_fp32(value))

    def create_minnumf(self, lhs: Any, rhs: Any) -> Any:  # upstream has NaN of Triton 3.6 propagate
        return self.binary_op(lhs, rhs, functools.partial(_smaller, np.fmin))

    def create_maxnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, functools.partial(_larger, np.fmax))

    def create_minimumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, functools.partial(_smaller, np.minimum))

    def create_maximumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, functools.partial(_larger, np.maximum))

    def create_clampf(self, arg: Any, low: Any, high: Any, propagate_nan: Any) -> Any:
        if propagate_nan == PROPAGATE_NAN.NONE:
            return self.create_minnumf(self.create_maxnumf(arg, low), high)
        return self.create_minimumf(self.create_maximumf(arg, low), high)

    @_rounded_otherwise
    @for_each_program
    def create_fma(self, x: Any, y: Any, z: Any) -> Any:  # upstream rounds the product, too
        if x.dtype.scalar == tl.float64:
            return TensorHandle(directed.fma(x.data, y.data, z.data), tl.float64)
        if not is_bf16(x):
            return TensorHandle(fused(x.data, y.data, z.data), x.dtype.scalar)
        exact = (one.data.astype(np.float64) for one in map(widened, (x, y, z)))
        return rounded(TensorHandle(to_odd(fused(*exact)), tl.float32))

    def create_add(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, _modulo_2(lhs, np.add))

    def create_sub(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, _modulo_2(lhs, np.subtract))

    @for_each_program
    def create_umulhi(self, lhs: Any, rhs: Any) -> Any:  # upstream widens negative numbers as signed ones
        unsigned = [one.data.view(f"u{one.data.dtype.itemsize}").astype(object) for one in (lhs, rhs)]
        high = (unsigned[0] * unsigned[1]) >> lhs.dtype.scalar.primitive_bitwidth
        bits = np.asarray(high, f"u{lhs.data.dtype.itemsize}")
        return TensorHandle(bits.view(lhs.data.dtype), lhs.dtype.scalar)

    @for_each_program
    def create_histogram(self, data: Any, bins: int, mask: Any) -> Any:  # upstream counts `bins` in the last
        counted = (data.data >= 0) & (data.data < bins)
        counted = counted if mask is None else counted & mask.data
        return super().create_histogram(data, bins, TensorHandle(counted, tl.int1))

    def get_all_ones_value(self, type: Any) -> Any:
        ones = np.full(1, -1).astype(numpy_dtype(type))  # numpy converts no -1 to unsigned integers itself
        return TensorHandle(ones, type.scalar)

    def create_dot(self, a: Any, b: Any, d: Any, *options: object) -> Any:
        wide = super().create_dot(*(widened(as_half(one)) for one in (a, b)), widened(d), *options)
        result = rounded(wide) if is_bf16(d) else wide
        return self.roundings.of_product(result, a, b) if self.roundings else result

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        if dst_type.scalar != tl.bfloat16:
            return super().cast_impl(widened(src), dst_type)
        if is_bf16(src):
            return src
        return rounded(TensorHandle(each_program(to_odd, src.data), tl.float32))

    def create_fp_to_si(self, src: Any, dst_type: Any) -> Any:  # numpy's conversion depends on the processor
        data = each_program(as_integer, widened(src).data, numpy_dtype(dst_type))
        return TensorHandle(data, dst_type.scalar)

    create_fp_to_ui = create_fp_to_si

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        source, target = src.dtype.scalar, dst_type.scalar
        if any(one.is_fp8() and one not in FLOAT8 for one in (source, target)):
            return super().create_fp_to_fp(src, dst_type, rounding_mode)
        if source in FLOAT8:
            data = each_program(from_float8, src.data, source, target)
            return self.cast_impl(TensorHandle(data, tl.float32), dst_type)
        if rounding_mode in (None, ROUNDING_MODE.RTNE):
            if target not in FLOAT8:
                return self.cast_impl(src, dst_type)
            data = each_program(as_float8, widened(src).data, target)
        else:
            data = each_program(toward_zero, widened(src).data, target)
        return TensorHandle(data, target)

    def create_select(self, condition: Any, chosen: Any, otherwise: Any) -> Any:
        return as_chosen(super().create_select(condition, chosen, otherwise), chosen, otherwise)

    def create_cat(self, lhs: Any, rhs: Any) -> Any:
        return as_chosen(super().create_cat(lhs, rhs), lhs, rhs)

    def create_join(self, lhs: Any, rhs: Any) -> Any:
        return as_chosen(super().create_join(lhs, rhs), lhs, rhs)

    def create_bitcast(self, src: Any, dst_type: Any) -> Any:
        return as_cast(super().create_bitcast(src, dst_type), src)

    create_load = _with("masked", False, BatchBuilder.create_load)
    create_store = _with("masked", False, BatchBuilder.create_store)

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *operands: Any, **options: Any) -> Any:
        self.accessed = ptrs.dtype
        volatile = options.get("is_volatile") or operands[-1:] == (True,)
        load = _load_in_order if volatile else BatchBuilder.create_masked_load
        if other is None and self.undefined_byte:
            other = self._undefined(ptrs)
        return load(self, ptrs, mask, other, *operands, **options)

    def _undefined(self, ptrs: Any) -> Any:
        kind = ptrs.get_element_ty()
        dtype = np.dtype(numpy_dtype(kind))
        value = np.frombuffer(bytes([self.undefined_byte]) * dtype.itemsize, dtype)
        return TensorHandle(np.broadcast_to(value, ptrs.data.shape).copy(), kind)

    def create_masked_store(self, ptrs: Any, *operands: Any) -> Any:
        self.accessed = ptrs.dtype
        return super().create_masked_store(ptrs, *operands)

    @_atomic
    @for_one_program
    def create_atomic_rmw(self, operation: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        self.accessed = ptr.dtype
        sem = _among_programs(sem, scope)
        if not is_bf16(val):
            return super().create_atomic_rmw(operation, _dense(ptr), _dense(val), _dense(mask), sem, scope)
        if operation != ATOMIC_OP.FADD:
            raise not_executable(f"the atomic {operation} on bfloat16")
        return self.atomic_add_bf16(ptr, val, mask, sem)

    @_atomic
    @for_one_program
    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        self.accessed = ptr.dtype
        sem = _among_programs(sem, scope)
        return super().create_atomic_cas(_dense(ptr), _dense(cmp), _dense(val), sem, scope)

    def atomic_add_bf16(self, ptr: Any, val: Any, mask: Any, sem: Any) -> Any:
        """Add to memory; programs run one after another, so load, add and store of an element is atomic."""
        before = np.zeros_like(val.data)
        for index in np.argwhere(np.broadcast_to(mask.data, val.data.shape)):
            where = tuple(index)
            cell = ctypes.c_uint16.from_address(int(ptr.data[where]))
            before[where] = cell.value
            old = TensorHandle(before[where], tl.bfloat16)
            new = TensorHandle(val.data[where], tl.bfloat16)
            cell.value = self.binary_op(old, new, np.add).data.item()
        return TensorHandle(before, tl.bfloat16)

    @for_each_program
    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, operands: list[Any], result_type: Any, is_pure: bool
    ) -> Any:
        function = libdevice.function(symbol)
        if function is None:
            raise not_executable(f"the libdevice function {symbol}")
        result = function(*(torch.from_numpy(np.array(operand.data)) for operand in operands)).numpy()
        dtype = result_type.scalar
        rounds = result.dtype.kind == "f" and dtype.is_int()  # llrint
        data = as_integer(result, numpy_dtype(dtype)) if rounds else result.astype(numpy_dtype(dtype))
        handle = TensorHandle(data, dtype)
        return self.roundings.of_library(handle, symbol) if self.roundings else handle

    def create_assert(self, condition: Any, message: str) -> None:
        if not condition:
            raise AssertFails(f"tl.device_assert of {self._where()} fails: {message}")

    def create_assume(self, condition: Any) -> None:
        if not condition:
            raise AssertFails(f"tl.assume of {self._where()} is false: the compiler relies on it")

    def _where(self) -> str:
        return f"{kernel_name()} at {kernel_line()}, program {tuple(map(int, self.grid_idx))}"

    def create_descriptor_reduce(self, kind: Any, desc: Any, value: Any, offsets: list[Any]) -> None:
        pointers, inside = desc.materialize_pointers(offsets)
        dtype = value.dtype.scalar
        adds = kind == DESCRIPTOR_REDUCE_KIND.ADD
        if dtype.is_floating() and not adds:
            raise not_executable(f"the atomic {kind} of {dtype}")
        unsigned = kind.name in ("MIN", "MAX") and not dtype.is_int_signed()
        name = "FADD" if dtype.is_floating() else f"U{kind.name}" if unsigned else kind.name
        if not isinstance(inside, TensorHandle):  # it is one since Triton 3.9
            inside = TensorHandle(inside, tl.int1)
        options = inside, MEM_SEMANTIC.RELAXED, MEM_SYNC_SCOPE.GPU
        self.create_atomic_rmw(getattr(ATOMIC_OP, name), pointers, value, *options)

    @contextmanager
    def compiled_with(self, *, debug: bool, sanitize_overflow: bool) -> Iterator[None]:
        """While active, asserts, and the checks of integers for overflow, are those of these options."""
        options: Any = self.options
        checked = dataclasses.replace(options, debug=debug, sanitize_overflow=debug and sanitize_overflow)
        with replaced(self, "options", checked):
            yield

    def create_inline_asm(self, assembly: str, *options: object) -> Any:
        raise not_executable(f"inline assembly {textwrap.shorten(assembly, 60)!r}")


for _name, _order in (("load", "acquire"), ("poll", "acquire"), ("store", "release")):
    if hasattr(BatchBuilder, f"create_atomic_{_name}"):  # since Triton 3.9
        _method = getattr(BatchBuilder, f"create_atomic_{_name}")
        setattr(DeviceBuilder, f"create_atomic_{_name}", _with("order", _order, _method))


def _smaller(function: Any, x: Any, y: Any) -> Any:
    # -0.0 < +0.0 (PTX ISA, min); numpy returns either
    return np.where((x == 0) & (y == 0), np.negative(np.negative(x) - y), function(x, y))


def _larger(function: Any, x: Any, y: Any) -> Any:
    return np.where((x == 0) & (y == 0), x + y, function(x, y))


def _modulo_2(operand: Any, function: Any) -> Any:
    # numbers of one bit wrap; numpy's add is `or`
    return np.logical_xor if operand.data.dtype == np.bool_ else function


def _among_programs(sem: Any, scope: Any) -> Any:
    # threads of one program are ordered by the scope of a block: other programs are not
    return MEM_SEMANTIC.RELAXED if scope == MEM_SYNC_SCOPE.CTA else sem


def _dense(value: Any) -> Any:
    # The interpreter's C++ atomics read an array that numpy broadcast, one value at stride 0, past its end.
    return TensorHandle(np.ascontiguousarray(value.data), value.dtype)


def not_executable(what: str, where: str = "") -> Problem:
    """The error for an operation which only a device can execute.

    where -- `kernel at file.py:12`; empty: the kernel that calls, if one does
    """
    name = kernel_name()
    where = where or (f"{name} at {kernel_line()}" if name else "")
    problem = f"{what}{where and f' of {where}'} can be compiled but not executed without a GPU"
    remedy = "run this kernel on the device, or only compile and record it: `tracing run --compile-only`"
    return Problem(f"{problem}; the launch is not judged" if where else problem, remedy)


BUILDER = DeviceBuilder()
SEMANTIC = TritonSemantic(BUILDER)
