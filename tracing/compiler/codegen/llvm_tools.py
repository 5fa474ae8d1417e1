"""The functions of mlir-translate, opt and llc, as far as libtriton provides them.

Triton's bindings translate MLIR to LLVM IR, run LLVM's default pipelines over it, and compile its text to
assembly. They cannot read LLVM IR for optimisation: LLVM's own functions in libtriton read it, and link it
into an empty module of the bindings.

Everything runs in a child process, because LLVM aborts on invalid input.
"""

from __future__ import annotations

import ctypes
import platform
import re
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from tracing.compiler.adders import new_context
from tracing.compiler.child import in_child
from tracing.compiler.symbols import function
from tracing.errors import Problem
from tracing.upstream.triton.libtriton import ir, llvm, pointer_of

_SECONDS = 86400.0  # its user stops it
_SCRATCH = re.compile(r"[^\s\"]*/tracing-\w+\.mlir")  # the file that libtriton reads instead of the text
_EMPTY = "module {}"
_BUFFER = "_ZN4llvm12MemoryBuffer12getMemBufferENS_9StringRefES1_b"
LEVELS = ("O0", "O1", "O2", "O3")


def translated(text: str, name: str = "<stdin>") -> str:
    """LLVM IR of a module in MLIR's LLVM dialect: `mlir-translate --mlir-to-llvmir`.

    name -- of the file that the text is from, for messages

    Raises Problem for text that does not parse, or has operations that are not LLVM's.
    """
    made: str = _in_child(lambda: str(_to_llvm(text, llvm.context())), name)
    return made


def optimised(text: str, level: str | None) -> str:
    """LLVM IR after one of LLVM's default pipelines, which Triton builds: `opt -S -O3`.

    level -- "O0" to "O3"; None: the IR is read and printed
    """
    if platform.machine() != "x86_64":
        raise Problem(
            "LLVM IR can be read through libtriton on x86-64 only",
            "use LLVM's own opt: `make llvm` builds one",
        )
    made: str = _in_child(lambda: _optimised(text, level))
    return made


def assembled(
    text: str, triple: str, processor: str, features: str, flags: Sequence[str], *, binary: bool
) -> str | bytes:
    """Assembly, or an object file, of LLVM IR: `llc`.

    triple, processor, features -- the target, "nvptx64-nvidia-cuda", "sm_90a", "+ptx83"
    flags                       -- of LLVM's command line, without a dash
    """

    def call() -> str | bytes:
        llvm.init_targets()
        given = [text, triple, processor, features, list(flags), False, binary]
        more = (llvm.translate_to_asm.__doc__ or "").count(
            ": bool"
        ) - 2  # 3.8 has canonicalize_gep, 3.9 sched4reg
        code: str | bytes = llvm.translate_to_asm(*given, *[False] * min(more, 1))
        return code

    made: str | bytes = _in_child(call)
    return made


def _in_child(call: Callable[[], Any], name: str = "<stdin>") -> Any:
    ended = in_child(call, _SECONDS)
    if ended.failure:
        errors = [line for line in ended.stderr.splitlines() if "error" in line.lower()]
        reasons = (
            errors[:3]
            if errors and "Parse MLIR file failed" in ended.failure
            else [ended.failure, *errors[:3]]
        )
        raise Problem(_SCRATCH.sub(name, "; ".join(reasons)))
    return ended.result


def _to_llvm(text: str, context: Any) -> Any:
    of_mlir = new_context()
    llvm.init_targets()
    with tempfile.NamedTemporaryFile("w", prefix="tracing-", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, of_mlir)
    module.context = of_mlir
    return llvm.to_module(module, context)


def _optimised(text: str, level: str | None) -> str:
    context = llvm.context()
    module = _to_llvm(_EMPTY, context)
    _read_into(module, context, text)
    if level is not None:
        llvm.optimize_module(module, getattr(llvm, f"OPTIMIZE_{level}"))
    return str(module)


def _read_into(module: Any, context: Any, text: str) -> None:
    # the empty module takes its target from the module that is linked into it
    data = text.encode()
    buffer, read, error = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_char_p()
    by_reference, string = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_size_t)
    make = function(_BUFFER, None, by_reference, *string, *string, ctypes.c_bool)
    make(ctypes.byref(buffer), data, len(data), b"<stdin>", 7, False)
    parse = function("LLVMParseIRInContext", ctypes.c_int, *[ctypes.c_void_p] * 4)
    address = pointer_of(context)
    if parse(address, buffer, ctypes.byref(read), ctypes.byref(error)):
        raise Problem(f"it is no LLVM IR: {(error.value or b'').decode()}", "")
    link = function("LLVMLinkModules2", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    if link(pointer_of(module), read):
        raise Problem("the module cannot be linked into an empty one", "")
