"""The native library of Triton: its MLIR, LLVM and pass bindings.

Imports no torch: the compiler half of this project works without it.
"""

from __future__ import annotations

import ctypes
import tempfile
from typing import Any

from triton._C import libtriton
from triton._C.libtriton import amd, ir, llvm, nvidia
from triton._C.libtriton import interpreter as native_interpreter

from tracing.upstream.contract import require

__all__ = ["amd", "ir", "libtriton", "llvm", "native_interpreter", "nvidia", "pointer_of"]

_HEADER = object.__basicsize__  # bytes of a Python object, after which its binding adds its own
_DIRECT = 1 << 2  # nb_inst::direct, after two bits of nb_inst::state


def pointer_of(instance: Any) -> int | None:
    """The address of the C++ object that an object of these bindings stands for: a context, a module."""
    header_end = id(instance) + _HEADER
    if hasattr(type(instance), "_pybind11_conduit_v1_"):
        return ctypes.c_void_p.from_address(header_end).value
    # triton #10283 ("Switch Python bindings to nanobind", in 3.9)
    address = id(instance) + ctypes.c_int32.from_address(header_end).value
    is_direct = ctypes.c_uint32.from_address(header_end + 4).value & _DIRECT
    return address if is_direct else ctypes.c_void_p.from_address(address).value


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    context = ir.context()
    ir.load_dialects(context)
    require(pointer_of(context) not in (None, pointer_of(ir.context())), "an address for each context")
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write("module { tt.func public @kernel() { tt.return } }")
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    manager = ir.pass_manager(context)
    libtriton.passes.common.add_canonicalizer(manager)
    require("canonicalize" in manager.get_pipeline_str(), "the text of a pipeline")
    manager.run(module, "contract")
    require(module.get_entry_func_name() == "kernel", "the name of the kernel")
    for name in ("context", "init_targets", "to_module", "optimize_module", "translate_to_asm"):
        require(hasattr(llvm, name), f"{name} of libtriton.llvm")
