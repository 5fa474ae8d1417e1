"""A recorded launch, ready to be made again: its kernel as a Python file, its arguments, what they held.

The file needs torch and Triton alone. Arguments are facts that JSON can hold; contents lie beside them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracing.analyze.compare.signature_pair import signature_of
from tracing.analyze.views import extent
from tracing.errors import Problem
from tracing.model import Blob, Compilation, KeptTensor, Kernel, KernelArg, KernelLaunch
from tracing.store import Run, rank_of

_TRITON_TYPE = re.compile(r"(fp|bf|u?int)\d+\w*")
_DESCRIPTOR = re.compile(r"tt\.func public @[^\n]*!tt\.tensordesc")
_OPTIONS = ("enable_fp_fusion", "maxnreg")  # beside those of every launch: what may change a result


@dataclass(frozen=True, slots=True)
class Again:
    """What is needed to make one launch again."""

    launch: KernelLaunch
    module: str  # Python text that defines KERNEL, CONSTANTS and OPTIONS
    facts: Mapping[str, Any]  # grid, arguments, and the digests that it left
    inputs: Mapping[str, Blob]  # the contents that were kept, by argument: safetensors files
    missing: tuple[str, ...]  # arguments that the kernel reads, and whose contents were not kept


def find_launch(run: Run, index: int, rank: int | None = None) -> tuple[str, KernelLaunch]:
    """Launch `index` of a run, and the process that made it.

    rank -- whose; None: of the one process that has such a launch

    Raises Problem if there is none, or more than one.
    """
    found = [
        (process, row)
        for process in run.processes()
        if rank in (None, rank_of(process))
        for row in run.rows(process)
        if row.line.index == index
    ]
    if len(found) != 1:
        why = f"{len(found)} processes of it have one" if found else "it has none"
        there = "say whose: `--rank R`; " if found else ""
        raise Problem(
            f"{run.path} has no single launch {index}: {why}", f"{there}`tracing show {run.path}` lists them"
        )
    process, row = found[0]
    return process, run.joined(row, *signature_of(row, run.signatures(process), run))


def again(run: Run, process: str, launch: KernelLaunch) -> Again:
    """Collect what is needed to make a launch of a process again.

    Raises Problem, with the reason, for a kernel that cannot be launched outside of its program.
    """
    kept = [
        one
        for one in run.view(process, KeptTensor, KeptTensor)
        if (one.launch, one.side) == (launch.index, "before")
    ]
    inputs = {launch.args[one.position].name: one.blob for one in kept}
    missing = tuple(arg.name for arg in launch.args if arg.reads and arg.name not in inputs)
    return Again(launch, kernel_file(run, launch), _facts(launch, list(inputs)), inputs, missing)


def kernel_file(run: Run, launch: KernelLaunch) -> str:
    """The text of a Python file that defines the launched kernel as KERNEL, with CONSTANTS and OPTIONS.

    Raises Problem, with the reason, for a kernel that cannot be launched outside of its program.
    """
    kernel = launch.kernel
    source = kernel_module(run, kernel)
    if _DESCRIPTOR.search(run.text(kernel.stages["ttir"]) if "ttir" in kernel.stages else ""):
        raise Problem(
            f"{kernel.name} takes a tensor descriptor, which was not recorded", "make it in the kernel"
        )
    return source + configuration(run, kernel, source)


def kernel_module(run: Run, kernel: Kernel) -> str:
    """The text of a module that defines a kernel as KERNEL.

    Raises Problem, with the reason, if there is none.
    """
    if kernel.kind != "triton" or kernel.module is None:
        raise Problem(
            f"the run has no source of {kernel.name} that can be compiled again",
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
    """The lines that give a module of `source` the CONSTANTS and OPTIONS with which a kernel was compiled.

    Raises Problem for a constant that is no literal.
    """
    constants = {name: _literal(name, text) for name, text in kernel.constants.items()}
    known = {name: text for name, text in constants.items() if name in parameters(source)}
    pairs = ", ".join(f"{name!r}: {text}" for name, text in known.items())
    options = {"num_warps": kernel.num_warps, "num_stages": kernel.num_stages, **_options(run, kernel)}
    return f"CONSTANTS = {{{pairs}}}\nOPTIONS = {options!r}\n"


def _options(run: Run, kernel: Kernel) -> dict[str, object]:
    found: dict[str, object] = {"num_ctas": kernel.num_ctas} if kernel.num_ctas > 1 else {}
    compiled = (one for one in run.records(Compilation) if one.hash == kernel.hash)
    said = next((one.options for one in compiled), {})
    return found | {name: ast.literal_eval(said[name]) for name in _OPTIONS if name in said}


def parameters(module: str) -> dict[str, bool]:
    """The parameters of the kernel of a module, by name, and whether each is declared tl.constexpr."""
    functions = [node for node in ast.parse(module).body if isinstance(node, ast.FunctionDef)]
    return {  # the kernel is defined last
        one.arg: one.annotation is not None and "constexpr" in ast.unparse(one.annotation)
        for one in functions[-1].args.args
    }


def _literal(name: str, text: str) -> str:
    if _TRITON_TYPE.fullmatch(text):
        return f"triton.language.dtype({text!r})"
    if text in ("inf", "-inf", "nan"):
        return f"float({text!r})"
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise Problem(
            f"the constant {name} was recorded as {text}, which is no literal", "replay it in its own program"
        ) from None
    return text


def _facts(launch: KernelLaunch, contents: list[str]) -> dict[str, Any]:
    tensors = [arg for arg in launch.args if arg.tensor is not None]
    scalars = [arg for arg in launch.args if arg.tensor is None and arg.name not in launch.kernel.constants]
    if strange := [arg for arg in scalars if isinstance(arg.value, str)]:
        raise Problem(
            f"the argument {strange[0].name} was recorded as {strange[0].value}, which is no number",
            "replay it in its own program",
        )
    return {
        "index": launch.index,
        "grid": launch.grid,
        "values": {arg.name: arg.value for arg in scalars},
        "storages": {str(arg.storage): _size(tensors, arg) for arg in tensors},
        "contents": contents,
        "tensors": {arg.name: _layout(arg) for arg in tensors},
        "expected": {
            arg.name: arg.after.bits for arg in tensors if arg.after and (arg.writes or arg.modified)
        },
    }


def _size(tensors: list[KernelArg], one: KernelArg) -> int:
    return max(extent(arg.tensor)[1] for arg in tensors if arg.tensor and arg.storage == one.storage)


def _layout(arg: KernelArg) -> dict[str, object]:
    assert arg.tensor is not None
    meta = arg.tensor
    return {"storage": arg.storage, "dtype": meta.dtype, "shape": meta.shape, "stride": meta.stride,
            "offset": meta.offset}  # fmt: skip
