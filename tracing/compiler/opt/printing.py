"""Set printer options of MLIR that Triton's bindings lack, through the symbols of libtriton.

Used only for the flags of `tracing opt` that need it, and only in a child process: a library with another
layout can crash here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from tracing.compiler.symbols import function
from tracing.errors import Problem
from tracing.upstream.triton.libtriton import pointer_of

_ALLOW = "_ZN4mlir11MLIRContext25allowUnregisteredDialectsEb"
_ALLOWED = "_ZN4mlir11MLIRContext26allowsUnregisteredDialectsEv"
_VERIFY = "_ZN4mlir11PassManager14enableVerifierEb"
_TIME = "_ZN4mlir11PassManager12enableTimingEv"
_COUNT = "_ZN4mlir11PassManager16enableStatisticsENS_15PassDisplayModeE"
_PIPELINE = 1  # PassDisplayMode: in the order of the passes
_REGISTER = "_ZN4mlir27registerAsmPrinterCLOptionsEv"
_PARSE = "LLVMParseCommandLineOptions"


def require() -> None:
    """Raise Problem if this Triton lacks a symbol that this module needs."""
    for name in (_ALLOW, _ALLOWED, _REGISTER, _PARSE):
        function(name, None)


def set_options(options: Sequence[str]) -> None:
    """Give LLVM's command line these options, for the rest of this process: "-mlir-print-local-scope"."""
    if options:
        function(_REGISTER, None)()
        words = ["tracing", *options]
        arguments = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        parse = function(_PARSE, None, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p)
        parse(len(words), arguments, None)


def allow_unregistered_dialects(context: Any) -> None:
    """Make a context accept operations of unregistered dialects.

    Raises Problem where this Triton stores its contexts differently.
    """
    allow = function(_ALLOW, None, ctypes.c_void_p, ctypes.c_bool)
    allowed = function(_ALLOWED, ctypes.c_bool, ctypes.c_void_p)
    pointer = pointer_of(context)
    before = allowed(pointer)
    allow(pointer, True)
    if before or not allowed(pointer):
        remedy = "build Triton (`make triton`) and use its own triton-opt"
        raise Problem("the MLIR context of this Triton cannot be located", remedy)


def verify_nothing(manager: Any) -> None:
    """Disable the verifier after each pass of a pass manager."""
    function(_VERIFY, None, ctypes.c_void_p, ctypes.c_bool)(pointer_of(manager), False)


def report_times(manager: Any) -> None:
    """Make a pass manager print the time of each pass when it is deleted."""
    function(_TIME, None, ctypes.c_void_p)(pointer_of(manager))


def report_statistics(manager: Any) -> None:
    """Make a pass manager print the statistics of its passes after it ran."""
    function(_COUNT, None, ctypes.c_void_p, ctypes.c_int)(pointer_of(manager), _PIPELINE)
