"""Launch a given CUDA binary of a kernel, through the CUDA driver.

Triton's own launcher is not used, because it belongs to one compile, and this module launches any build.
cuda-bindings is not used, because it takes the same ctypes values for four calls, and torch 2.15 does not
install it for Python 3.15.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

ParameterValues: TypeAlias = Mapping[str, torch.Tensor | int | float | bool | None]

_PARAMETER = re.compile(r"\.param \.(\w+)[^,\n]*_param_\d+")
_THREADS = re.compile(r"\.(?:req|max)ntid (\d+)")
_ENTRY = re.compile(r"\.visible \.entry (\w+)\(")
_FLOATS = {"32": ctypes.c_float, "64": ctypes.c_double}
_INTEGERS = {"8": ctypes.c_uint8, "16": ctypes.c_uint16, "32": ctypes.c_uint32, "64": ctypes.c_uint64}
_SHARED_LIMIT = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


@dataclass(frozen=True, slots=True)
class CudaBinary:
    """One build of a kernel."""

    ptx: str  # declares parameters and launch bounds
    cubin: bytes
    shared: int  # bytes of dynamic shared memory

    def launch(self, values: ParameterValues, grid: tuple[int, int, int]) -> str:
        """Launch it asynchronously; returns "", or the reason why the driver, or this launcher, rejects it.

        values -- values of the arguments that are not constant, in order; tensors on the GPU
        """
        name, threads = _ENTRY.search(self.ptx), _THREADS.search(self.ptx)
        if name is None or threads is None:
            return "the PTX names no entry, or not how many threads it wants"
        packed = parameters(self.ptx, values)
        if isinstance(packed, str):
            return packed
        return _launch(self.cubin, name[1], grid, int(threads[1]), self.shared, packed)


def parameters(ptx: str, values: ParameterValues) -> list[Any] | str:
    """The driver's argument for each parameter of the kernel, as ctypes; or the reason why there is none."""
    entry = ptx[ptx.index(".entry") :]
    kinds = _PARAMETER.findall(entry[: entry.index("{")])
    passed = [*values]
    scratch = kinds[len(passed) :]  # pointers to memory that Triton allocates for a launch, if it needs any
    if len(kinds) < len(passed) or len(scratch) > 2 or any(kind[1:] != "64" for kind in scratch):
        return f"the PTX takes {len(kinds)} parameters, the launch gave {len(passed)}"
    if any(f"_param_{len(passed) + n}]" in entry for n in range(len(scratch))):
        return "the kernel uses scratch memory, which this replay does not give it"
    packed = [_packed(values[name], kind) for name, kind in zip(passed, kinds, strict=False)]
    if None in packed:
        return f"the PTX takes {passed[packed.index(None)]} as {kinds[packed.index(None)]}"
    return [*packed, *(ctypes.c_uint64(0) for _ in scratch)]


def _packed(value: torch.Tensor | int | float | bool | None, kind: str) -> Any:
    # None: no parameter of this kind takes the value
    bits = kind.lstrip("busf")
    if isinstance(value, torch.Tensor):
        return ctypes.c_uint64(value.data_ptr()) if bits == "64" else None
    if isinstance(value, float) and bits in _FLOATS:
        return _FLOATS[bits](value)
    return _INTEGERS[bits](value) if isinstance(value, int) and bits in _INTEGERS else None


def _launch(
    cubin: bytes, name: str, grid: tuple[int, int, int], threads: int, shared: int, packed: list[Any]
) -> str:
    driver = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    pointers = (ctypes.c_void_p * len(packed))(*(ctypes.addressof(one) for one in packed))
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("cuModuleLoadData", (ctypes.byref(module), cubin)),
        ("cuModuleGetFunction", (ctypes.byref(function), module, name.encode())),
        ("cuFuncSetAttribute", (function, _SHARED_LIMIT, shared)),
        ("cuLaunchKernel", (function, *grid, threads, 1, 1, shared, None, pointers, None)),
    ]
    for called, arguments in calls:
        status = getattr(driver, called)(*arguments)
        if status:
            return f"{called} failed with CUDA error {status}"
    return ""
