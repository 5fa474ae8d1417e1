"""Execute one launch of a compiled Triton kernel on CPU tensors.

The work is done by Triton's own interpreter (`triton.runtime.interpreter`), which is built for functions
decorated under TRITON_INTERPRET=1. Here it is given ordinary `JITFunction`s, and what it computes wrongly or
slowly is replaced:

- bfloat16: upstream adds the bit patterns and truncates; here it is float32, rounded to nearest even;
- libdevice: upstream's functions have no bodies and return None; here they are torch's CPU functions;
- reductions and scans with any combine function: upstream loops over elements; here they are vectorised;
- the patched language: restored after each launch, so that the next compile in this process works.

All of it is private to Triton and holds for 3.6 to 3.9; nothing else in this project relies on it.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import operator
import random
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

# Triton imports Gluon at a first launch; with the language patched, that fails on Python 3.10.
import triton.experimental.gluon  # noqa: F401  (imported for its effect)
import triton.language as tl
from triton.language.extra import libdevice as libdevice_stubs
from triton.language.extra.cuda import libdevice as libdevice_nvidia
from triton.language.extra.hip import libdevice as libdevice_amd
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter as upstream
from triton.runtime.jit import JITFunction

from tracing.errors import Problem

_ABSENT = object()
# The language is patched process-wide while a launch executes; a backward pass may have its own thread.
_LOCK = threading.RLock()


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """`owner.name` is `value` inside; afterwards the previous entry (a descriptor, or none) is back."""
    previous = vars(owner).get(name, _ABSENT)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if previous is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, previous)


def execute(source: Any, arguments: Sequence[object], grid: tuple[int, int, int]) -> None:
    """Run every program of one launch, in the order of the grid, in place on CPU tensors.

    source    -- triton.compiler.ASTSource of the compiled kernel: function, signature and constants
    arguments -- one value for each parameter of the kernel, constexprs too (what a launcher is given)
    grid      -- programs along x, y and z

    Integers and floats enter with the types of the compiled signature: arithmetic promotes as on the device.
    Cost: 2-3 ms a launch, and 0.5-1.2 ms a program of a dozen operations on blocks of up to 4096 elements.

    Raises Problem for what can be compiled but not executed here: inline assembly, rare libdevice functions.
    """
    with _LOCK, _interpreted_language(), _unobserved(), np.errstate(all="ignore"):
        bound = _bind(source, arguments)
        program = _rewritten(source.fn.fn)
        _BUILDER.set_grid_dim(*grid)
        for index in _programs(*grid):
            _BUILDER.set_grid_idx(*index)
            program(**bound)


def _programs(*grid: int) -> Iterable[tuple[int, ...]]:
    return np.ndindex(*grid)


@contextmanager
def permuted(seed: int) -> Iterator[None]:
    """Inside, the programs of each launch run in another order: of a GPU's, no order is promised."""

    def programs(*grid: int) -> Iterable[tuple[int, ...]]:
        found = list(np.ndindex(*grid))
        random.Random(seed).shuffle(found)
        return found

    with replaced(sys.modules[__name__], "_programs", programs):
        yield


def forget() -> None:
    """Drop the rewritten functions: a kernel's globals may have changed before the next use."""
    _rewritten.cache_clear()


# ---- what a kernel is given ----


def _bind(source: Any, arguments: Sequence[object]) -> dict[str, object]:
    function = source.fn
    constants = {
        function.arg_names[path[0]]: value for path, value in source.constants.items() if len(path) == 1
    }
    bound = dict(zip(function.arg_names, arguments, strict=True))
    for parameter in function.params:
        name = parameter.name
        # Inductor passes None for a constant that it has compiled in.
        value = constants.get(name) if bound.get(name) is None else bound[name]
        bound[name] = _typed(value, source.signature.get(name, "constexpr"))
    return bound


def _typed(value: Any, type_name: Any) -> object:
    if type_name == "constexpr":  # declared, or specialised by Triton: an integer 1, None
        return value
    if isinstance(value, tuple):
        items = [_typed(item, name) for item, name in zip(value, type_name, strict=True)]
        make: Any = type(value)
        return make(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, (int, float)) and type_name != "u1":
        dtype = tl.str_to_ty(type_name, None)
        data = np.array([value]).astype(upstream._get_np_dtype(dtype))
        return tl.tensor(upstream.TensorHandle(data, dtype), dtype)
    return upstream._implicit_cvt(value)


class _Rewriter(upstream.FunctionRewriter):  # type: ignore[misc, unused-ignore]
    # Upstream executes into the globals of the user's module, leaves its own names there, and loses closures.
    def _compile_and_exec(self, transformed_ast: Any) -> Any:
        outer = {**self.fn.__globals__, **inspect.getclosurevars(self.fn).nonlocals}
        members = {name: _language_member(value) for name, value in outer.items()}
        namespace = {**vars(upstream), "range": _device_range, **members}
        exec(compile(transformed_ast, self.filename, "exec"), namespace)
        return namespace[self.fn.__name__]


def _device_range(first: Any, last: Any = None, step: Any = 1, **options: object) -> Iterator[Any]:
    # On the device a loop variable is a tensor, of 64 bits if a bound is; upstream's is Python's int.
    bounds = (0, first, step) if last is None else (first, last, step)
    wide = any(isinstance(bound, tl.tensor) and bound.dtype.primitive_bitwidth == 64 for bound in bounds)
    for value in range(*map(operator.index, bounds)):
        yield _SEMANTIC.cast(_SEMANTIC.to_tensor(value), tl.int64 if wide else tl.int32)


@functools.cache
def _rewritten(function: Callable[..., object]) -> Callable[..., object]:
    rewritten: Callable[..., object] = _Rewriter(function).rewrite_ast()
    return rewritten


def _language_member(value: object) -> object:
    # `from triton.language.extra.libdevice import exp` binds the function; patching its module misses that.
    module = getattr(value, "__module__", None) or ""
    if inspect.isfunction(value) and module.startswith("triton.language"):
        return getattr(sys.modules[module], value.__name__, value)
    return value


# ---- the language while a kernel executes ----


@contextmanager
def _interpreted_language() -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in _REPLACEMENTS.items():
            stack.enter_context(replaced(upstream, name, value))
        # Helpers called inside a kernel are JITFunctions, which refuse to be called outside of a compile.
        stack.enter_context(replaced(JITFunction, "__call__", _call_helper))
        stack.enter_context(replaced(JITFunction, "__get__", _bind_method))
        # Upstream looks for these modules in the kernel's globals; tl.standard needs both of them.
        scope = upstream._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
        stack.callback(scope.restore)
        # Triton 3.6 has int(array of one element) here, an error since NumPy 2.4.
        scope.set_attr(tl.tensor, "__index__", lambda self: int(self.handle.data.item()))
        scope.set_attr(tl, "range", _device_range)
        _patch_libdevice(scope)
        yield


@contextmanager
def _unobserved() -> Iterator[None]:
    # libdevice runs torch operators; they are the interpreter's, not the program's, so no mode may see them.
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction(), torch.no_grad():
        yield


def _call_helper(self: Any, *arguments: object, **keywords: object) -> object:
    return _rewritten(self.fn)(*arguments, **keywords)


def _bind_method(self: Any, instance: object, owner: object = None) -> object:
    # x.sum(0): Triton's compiler passes x itself, so JITFunction is no descriptor.
    return self if instance is None else functools.partial(self, instance)


# ---- bfloat16, whose numpy data are bit patterns ----


def _is_bf16(value: object) -> bool:
    # A comparison keeps the dtype of its operands beside boolean data: ask both.
    if not isinstance(value, upstream.TensorHandle):
        return False
    return bool(value.data.dtype == np.uint16 and value.dtype.scalar == tl.bfloat16)


def _widened(value: Any) -> Any:
    if not _is_bf16(value):
        return value
    bits = value.data.astype(np.uint32) << np.uint32(16)
    return upstream.TensorHandle(bits.view(np.float32), tl.float32)


def _rounded(value: Any) -> Any:
    if value.data.dtype != np.float32:
        return value
    data = np.ascontiguousarray(value.data)
    bits = data.view(np.uint32).astype(np.uint64)
    nearest_even = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet_nan = (bits >> 16) | 0x40
    return upstream.TensorHandle(
        np.where(np.isnan(data), quiet_nan, nearest_even).astype(np.uint16), tl.bfloat16
    )


def _dense(value: Any) -> Any:
    # The interpreter's C++ atomics read an array that numpy broadcast, one value at stride 0, past its end.
    return upstream.TensorHandle(np.ascontiguousarray(value.data), value.dtype)


def _through_float32(operation: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(operation)
    def wrapped(self: Any, *operands: Any) -> Any:
        if not any(map(_is_bf16, operands)):
            return operation(self, *operands)
        return _rounded(operation(self, *map(_widened, operands)))

    return wrapped


def _as_float8(data: Any, dtype: torch.dtype) -> Any:
    # Upstream rounds halves up and wraps around; the device saturates (PTX ISA, cvt.rn.satfinite).
    limit = torch.finfo(dtype).max
    return torch.from_numpy(np.array(data)).clamp(-limit, limit).to(dtype).view(torch.uint8).numpy()


class _Builder(upstream.InterpreterBuilder):  # type: ignore[misc, unused-ignore]
    binary_op = _through_float32(upstream.InterpreterBuilder.binary_op)
    unary_op = _through_float32(upstream.InterpreterBuilder.unary_op)
    ternary_op = _through_float32(upstream.InterpreterBuilder.ternary_op)
    create_fma = _through_float32(upstream.InterpreterBuilder.create_fma)
    create_erf = _through_float32(upstream.InterpreterBuilder.create_erf)
    create_rsqrt = _through_float32(upstream.InterpreterBuilder.create_rsqrt)

    def get_bf16(self, value: float) -> Any:  # upstream since 3.9
        return _rounded(self.get_fp32(value))

    def create_dot(self, a: Any, b: Any, d: Any, *options: object) -> Any:
        wide = super().create_dot(_widened(a), _widened(b), _widened(d), *options)
        return _rounded(wide) if _is_bf16(d) else wide

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        if dst_type.scalar != tl.bfloat16:
            return super().cast_impl(_widened(src), dst_type)
        return src if _is_bf16(src) else _rounded(super().cast_impl(src, tl.float32))

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        dtype = dst_type.scalar
        if rounding_mode not in (None, upstream._ir.ROUNDING_MODE.RTNE):
            return super().create_fp_to_fp(src, dst_type, rounding_mode)
        if dtype == tl.bfloat16 and src.dtype.scalar == tl.float32:
            return self.cast_impl(src, dst_type)
        if dtype in _FLOAT8 and src.dtype.primitive_bitwidth > 8:
            wide = self.cast_impl(src, tl.float32)
            return upstream.TensorHandle(_as_float8(wide.data, _FLOAT8[dtype]), dtype)
        return super().create_fp_to_fp(src, dst_type, rounding_mode)

    def create_atomic_rmw(self, operation: Any, ptr: Any, val: Any, mask: Any, *options: Any) -> Any:
        if not _is_bf16(val):
            return super().create_atomic_rmw(operation, _dense(ptr), _dense(val), _dense(mask), *options)
        if operation != upstream._ir.ATOMIC_OP.FADD:
            raise _not_executable(f"the atomic {operation} on bfloat16")
        return self._atomic_add_bf16(ptr, val, mask)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, *options: Any) -> Any:
        return super().create_atomic_cas(_dense(ptr), _dense(cmp), _dense(val), *options)

    # Programs run one after another, so load, add and store of an element is atomic.
    def _atomic_add_bf16(self, ptr: Any, val: Any, mask: Any) -> Any:
        before = np.zeros_like(val.data)
        for index in np.argwhere(np.broadcast_to(mask.data, val.data.shape)):
            where = tuple(index)
            cell = ctypes.c_uint16.from_address(int(ptr.data[where]))
            before[where] = cell.value
            old = upstream.TensorHandle(before[where], tl.bfloat16)
            new = upstream.TensorHandle(val.data[where], tl.bfloat16)
            cell.value = self.binary_op(old, new, np.add).data.item()
        return upstream.TensorHandle(before, tl.bfloat16)

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, operands: list[Any], result_type: Any, is_pure: bool
    ) -> Any:
        function = _libdevice_function(symbol)
        result = function(*(torch.from_numpy(np.array(operand.data)) for operand in operands)).numpy()
        dtype = result_type.scalar
        return upstream.TensorHandle(result.astype(upstream._get_np_dtype(dtype)), dtype)

    def create_inline_asm(self, assembly: str, *options: object) -> Any:
        raise _not_executable(f"inline assembly {assembly!r}")


def _not_executable(what: str) -> Problem:
    problem = f"{what} can be compiled but not executed without a GPU"
    return Problem(problem, "run this kernel on the device, or replace the operation while debugging")


# ---- reductions and scans with any combine function ----


class _Combining(upstream.ReduceScanOpInterface):  # type: ignore[misc, unused-ignore]
    def combine(self, left: list[Any], right: list[Any], dtypes: list[Any]) -> list[Any]:
        operands = [self.to_tensor(data, dtype) for data, dtype in zip(left + right, dtypes * 2, strict=True)]
        results = self.combine_fn(*operands)
        results = results if isinstance(results, (tuple, tl.tuple)) else (results,)
        pairs = zip(map(_SEMANTIC.to_tensor, results), dtypes, strict=True)
        values = [_SEMANTIC.cast(result, dtype).handle.data for result, dtype in pairs]
        return [
            np.broadcast_to(value, old.shape).astype(old.dtype)
            for value, old in zip(values, left, strict=True)
        ]

    def apply_impl(self, tensors: tuple[Any, ...]) -> Any:
        # numpy's own sum, max and cumsum would take bfloat16's bit patterns for integers.
        if any(tensor.dtype == tl.bfloat16 for tensor in tensors):
            return self.generic(tensors)
        return super().apply_impl(tensors)

    def generic(self, tensors: tuple[Any, ...]) -> list[Any]:
        raise NotImplementedError


class _Reduce(_Combining, upstream.ReduceOps):  # type: ignore[misc, unused-ignore]
    # Neighbours are combined, log2(n) times: the order is kept, so the function need not be commutative.
    def generic(self, tensors: tuple[Any, ...]) -> list[Any]:
        dtypes = [tensor.dtype for tensor in tensors]
        columns = [_axis_first(tensor.handle.data, self.axis) for tensor in tensors]
        while len(columns[0]) > 1:
            columns = self.combine([data[0::2] for data in columns], [data[1::2] for data in columns], dtypes)
        rank = tensors[0].handle.data.ndim
        return [
            self.to_tensor(self._shaped(data[0], rank), dtype)
            for data, dtype in zip(columns, dtypes, strict=True)
        ]

    def _shaped(self, data: Any, rank: int) -> Any:
        if not self.keep_dims:
            return data
        return np.reshape(data, (1,) * rank) if self.axis is None else np.expand_dims(data, self.axis)

    generic_reduce = generic


class _Scan(_Combining, upstream.ScanOps):  # type: ignore[misc, unused-ignore]
    # Hillis and Steele: after step k every element covers 2**k predecessors. Shapes stay powers of two.
    def generic(self, tensors: tuple[Any, ...]) -> list[Any]:
        dtypes = [tensor.dtype for tensor in tensors]
        columns = [_axis_first(tensor.handle.data, self.axis) for tensor in tensors]
        distance = 1
        while distance < len(columns[0]):
            combined = self.combine([np.roll(data, distance, axis=0) for data in columns], columns, dtypes)
            columns = [
                np.concatenate([old[:distance], new[distance:]])
                for old, new in zip(columns, combined, strict=True)
            ]
            distance *= 2
        restored = [np.ascontiguousarray(np.moveaxis(data, 0, self.axis)) for data in columns]
        return [self.to_tensor(data, dtype) for data, dtype in zip(restored, dtypes, strict=True)]

    generic_scan = generic

    # Upstream reverses around its own apply_impl, which the bfloat16 case does not reach.
    def apply_impl(self, tensors: tuple[Any, ...]) -> Any:
        if not (self.reverse and any(tensor.dtype == tl.bfloat16 for tensor in tensors)):
            return super().apply_impl(tensors)
        flipped = tuple(self._flipped(tensor) for tensor in tensors)
        return [self._flipped(tensor) for tensor in self.generic(flipped)]

    def _flipped(self, tensor: Any) -> Any:
        return self.to_tensor(np.ascontiguousarray(np.flip(tensor.handle.data, self.axis)), tensor.dtype)


def _axis_first(data: Any, axis: int | None) -> Any:
    return data.reshape(-1) if axis is None else np.moveaxis(data, axis, 0)


# ---- libdevice ----


def _patch_libdevice(scope: Any) -> None:
    for module in (libdevice_nvidia, libdevice_amd):
        upstream._patch_builtin(module, _BUILDER, scope)
    # The stubs have no bodies: Triton's compiler maps them to the functions of the target by name.
    for name, _ in inspect.getmembers(libdevice_stubs, inspect.isfunction):
        implementation = getattr(libdevice_nvidia, name, None) or getattr(libdevice_amd, name, None)
        scope.set_attr(libdevice_stubs, name, implementation or functools.partial(_missing_stub, name))


def _missing_stub(name: str, *arguments: object, **keywords: object) -> object:
    raise _not_executable(f"libdevice.{name}")


def _libdevice_function(symbol: str) -> Callable[..., torch.Tensor]:
    # __nv_expf, __nv_fast_expf, __nv_isnand, __ocml_exp_f32: a prefix, the name, the width.
    name = re.sub(r"^__(nv|ocml|ockl)_(fast_)?|_f(32|64)$", "", symbol)
    for candidate in (name, name[:-1] if name[-1] in "fd" else name):
        if candidate in _LIBDEVICE:
            return _LIBDEVICE[candidate]
    raise _not_executable(f"the libdevice function {symbol}")


def _half_away_from_zero(x: torch.Tensor) -> torch.Tensor:
    return torch.trunc(x + torch.copysign(torch.full_like(x, 0.5), x))


def _fma(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return (x.double() * y.double() + z.double()).to(z.dtype)


# CUDA libdevice user's guide, by names without prefix and width; torch's CPU functions agree with it.
_SAME_NAME_IN_TORCH = """
    abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc erfinv exp exp2 expm1 floor
    fmod hypot isinf isnan ldexp lgamma log log10 log1p log2 nextafter pow rsqrt signbit sin sinh sqrt tan
    tanh trunc
"""
_LIBDEVICE: Mapping[str, Callable[..., torch.Tensor]] = {
    **{name: getattr(torch, name) for name in _SAME_NAME_IN_TORCH.split()},
    "fabs": torch.abs,
    "powi": torch.pow,
    "pown": torch.pow,
    "fdivide": torch.div,
    "fma": _fma,
    "fmaf": _fma,
    "fdiv_rn": torch.div,
    "ddiv_rn": torch.div,
    "fsqrt_rn": torch.sqrt,
    "dsqrt_rn": torch.sqrt,
    "frsqrt_rn": torch.rsqrt,
    "fadd_rn": torch.add,
    "dadd_rn": torch.add,
    "fmul_rn": torch.mul,
    "dmul_rn": torch.mul,
    "fsub_rn": torch.sub,
    "nearbyint": torch.round,
    "rint": torch.round,
    "round": _half_away_from_zero,
    "llrint": torch.round,
    "llround": _half_away_from_zero,
    "ilogb": lambda x: torch.frexp(x).exponent - 1,
    "finite": torch.isfinite,
    "isfinite": torch.isfinite,
    "exp10": lambda x: torch.pow(10.0, x),
    "cbrt": lambda x: torch.copysign(x.abs().pow(1 / 3), x),
    "fdim": lambda x, y: torch.clamp(x - y, min=0),
    "tgamma": lambda x: torch.special.gammaln(x).exp(),
    "erfcx": torch.special.erfcx,
    "normcdf": torch.special.ndtr,
    "normcdfinv": torch.special.ndtri,
    "saturate": lambda x: x.clamp(0, 1),
    "j0": torch.special.bessel_j0,
    "j1": torch.special.bessel_j1,
    "y0": torch.special.bessel_y0,
    "y1": torch.special.bessel_y1,
    "i0": torch.special.i0,
    "i1": torch.special.i1,
    "cyl_bessel_i0": torch.special.i0,
    "cyl_bessel_i1": torch.special.i1,
}

_FLOAT8: Mapping[Any, torch.dtype] = {tl.float8e4nv: torch.float8_e4m3fn, tl.float8e5: torch.float8_e5m2}
_BUILDER = _Builder()
_SEMANTIC = TritonSemantic(_BUILDER)
_REPLACEMENTS: Mapping[str, object] = {
    "interpreter_builder": _BUILDER,
    "interpreter_semantic": _SEMANTIC,
    "ReduceOps": _Reduce,
    "ScanOps": _Scan,
}
