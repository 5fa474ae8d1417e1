"""A recorded kernel as the text of a Python file that needs only torch and Triton.

The file defines KERNEL, the function; CONSTANTS, its tl.constexpr arguments and specialised values; and
OPTIONS, its compiler options. Where arguments are named tuples, FIELDS has the names of their members.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection

from tracing.errors import Problem
from tracing.model import Compilation, Kernel
from tracing.store.reader import Run

_TRITON_TYPE = re.compile(r"(fp|bf|u?int)\d+\w*")
_FUNCTION = re.compile(r"(?:JIT|Constexpr)Function\([^:]+:(?:.*\.)?(\w+)\)")
_SIGNATURE = re.compile(r"tt\.func public @[^\n]*")
_PARAMETER = re.compile(r"%[\w.]+: ([^ ,)]+)")
_FLOATS = {"f64": "fp64", "f16": "fp16", "bf16": "bf16"}  # dtypes that Triton does not give a Python float
_OPTIONS = ("enable_fp_fusion", "maxnreg")  # in addition to those of every launch: what may change a result
_ASSERTED = ("debug", "sanitize_overflow")  # of a kernel whose tl.device_assert is executed


def kernel_file(run: Run, kernel: Kernel) -> str:
    """The text of a Python file that defines a kernel as KERNEL, with CONSTANTS and OPTIONS.

    Raises Problem, with the reason, for a kernel that cannot be launched outside of its program.
    """
    return configured(run, kernel, kernel_module(run, kernel))


def descriptors(run: Run, kernel: Kernel) -> int:
    """The number of a kernel's arguments that are tensor descriptors."""
    return _signature(run, kernel).count("!tt.tensordesc")


def configured(run: Run, kernel: Kernel, source: str) -> str:
    """A module of `source` with the CONSTANTS, the OPTIONS and the types with which a kernel was compiled."""
    return source + configuration(run, kernel, source) + _types(run, kernel, source)


def kernel_module(run: Run, kernel: Kernel) -> str:
    """The text of a module that defines a kernel as KERNEL.

    Raises Problem, with the reason, if there is none.
    """
    if kernel.kind != "triton" or kernel.module is None:
        raise Problem(
            f"the run has no source of {kernel.name} that can be recompiled",
            "it has that of kernels written in Python and compiled by Triton",
        )
    if kernel.undefined:
        names = ", ".join(kernel.undefined)
        raise Problem(
            f"{kernel.name} uses {names} of its module, which was not recorded: it is no constant, no "
            "function of Triton, and nothing of torch, Triton or the standard library",
            f"pass it as a tl.constexpr, or write it into the kernel; the module is {kernel.file}",
        )
    return run.text(kernel.module)


def configuration(run: Run, kernel: Kernel, source: str) -> str:
    """The lines that give a module of `source` the CONSTANTS, OPTIONS and FIELDS of a compiled kernel.

    Raises Problem for a constant that is neither a literal nor a function that the module defines.
    """
    functions = _defined(source)
    constants = {name: _literal(name, text, functions) for name, text in kernel.constants.items()}
    known = {name: text for name, text in constants.items() if name.split(".")[0] in parameters(source)}
    pairs = ", ".join(f"{name!r}: {text}" for name, text in known.items())
    options = {"num_warps": kernel.num_warps, "num_stages": kernel.num_stages, **_options(run, kernel)}
    fields = f"FIELDS = {dict(kernel.fields)!r}\n" if kernel.fields else ""
    return f"CONSTANTS = {{{pairs}}}\nOPTIONS = {options!r}\n{fields}"


def parameters(module: str) -> dict[str, bool]:
    """The parameters of the kernel of a module, by name, and whether each is declared tl.constexpr."""
    functions = [node for node in ast.parse(module).body if isinstance(node, ast.FunctionDef)]
    declared = functions[-1].args  # the kernel is defined last
    variadic = [declared.vararg] if declared.vararg else []
    return {
        one.arg: one.annotation is not None and "constexpr" in ast.unparse(one.annotation)
        for one in (*declared.posonlyargs, *declared.args, *variadic, *declared.kwonlyargs)
    }


def _defined(module: str) -> set[str]:
    # the functions that a module defines or imports
    nodes = ast.parse(module).body
    imported = [
        one.asname or one.name for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names
    ]
    return {*imported, *(node.name for node in nodes if isinstance(node, ast.FunctionDef))}


def _types(run: Run, kernel: Kernel, source: str) -> str:
    # Inductor compiles a float that a user's kernel is given as fp64, Triton as fp32
    names = [name for name in parameters(source) if name not in kernel.constants]
    types = _PARAMETER.findall(_signature(run, kernel))
    if len(names) != len(types):
        return ""
    given = {name: _FLOATS[kind] for name, kind in zip(names, types, strict=True) if kind in _FLOATS}
    if not given:
        return ""
    known = "parameter.annotation_type = TYPES.get(parameter.name, parameter.annotation_type)"
    return f"TYPES = {given!r}\nfor parameter in KERNEL.params:\n    {known}\n"


def _signature(run: Run, kernel: Kernel) -> str:
    # the line of the TTIR that declares the kernel
    line = _SIGNATURE.search(run.text(kernel.stages["ttir"])) if "ttir" in kernel.stages else None
    return line[0] if line else ""


def brief(value: str) -> str:
    """A recorded value in at most 80 characters, for a message."""
    return textwrap.shorten(value, 80, placeholder=" ...")


def _options(run: Run, kernel: Kernel) -> dict[str, object]:
    options: dict[str, object] = {"num_ctas": kernel.num_ctas} if kernel.num_ctas > 1 else {}
    compiled = (one for one in run.records(Compilation) if one.hash == kernel.hash)
    recorded = next((one.options for one in compiled), {})
    names = _OPTIONS if recorded.get("debug") != "True" else _OPTIONS + _ASSERTED
    return options | {name: ast.literal_eval(recorded[name]) for name in names if name in recorded}


def _literal(name: str, text: str, functions: Collection[str]) -> str:
    function = _FUNCTION.fullmatch(text)
    if function and function[1] in functions:
        return function[1]
    if _TRITON_TYPE.fullmatch(text):
        return f"triton.language.dtype({text!r})"
    if text in ("inf", "-inf", "nan"):
        return f"float({text!r})"
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise Problem(
            f"the constant {name} was recorded as {brief(text)}, which is no literal",
            "replay it in its own program",
        ) from None
    return text
