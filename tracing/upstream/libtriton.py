"""The native library of Triton: its MLIR, LLVM and pass bindings.

Imports no torch: the compiler half of this project works without it.
"""

from __future__ import annotations

import tempfile

from triton._C import libtriton
from triton._C.libtriton import amd, ir, llvm, nvidia
from triton._C.libtriton import interpreter as native_interpreter

from tracing.upstream.contract import require

__all__ = ["amd", "ir", "libtriton", "llvm", "native_interpreter", "nvidia"]


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    context = ir.context()
    ir.load_dialects(context)
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
