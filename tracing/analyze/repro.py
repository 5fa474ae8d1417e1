"""One recorded launch as a script of its own: kernel, inputs, configuration, and the digests it must leave.

The script needs torch, Triton, NumPy and safetensors, and nothing of this repository. Without a GPU it runs
the kernel in Triton's interpreter, whose bits are those of a GPU only where no rounding is involved.
"""

from __future__ import annotations

import ast
import builtins
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

from tracing.analyze.elements import extent
from tracing.errors import Problem
from tracing.model import KeptTensor, KernelArg, KernelLaunch
from tracing.store import Run

_IMPORTS = {
    "tl": "import triton.language as tl",
    "triton_helpers": "from torch._inductor.runtime import triton_helpers",
    "libdevice": "from torch._inductor.runtime.triton_helpers import libdevice",
    "tl_math": "from torch._inductor.runtime.triton_helpers import math as tl_math",
}
_TEMPLATE = Path(__file__).with_name("repro.py.in")


@dataclass(frozen=True, slots=True)
class Repro:
    """What was written."""

    script: Path
    files: tuple[Path, ...]
    missing: tuple[str, ...]  # inputs without recorded contents: they are zeros


def write_repro(run: Run, index: int, folder: Path) -> Repro:
    """Write launch `index` of a run into a folder, which is made: repro.py, launch.json and its inputs.

    Raises Problem, with what is missing, if there is no such launch, or the run has no source of its kernel,
    not all that the source uses, or none of the inputs.
    """
    launch = _launch(run, index)
    source = _source(run, launch)
    kept = _kept(run, launch)
    missing = tuple(arg.name for arg in launch.args if arg.reads and arg.name not in kept)
    if missing and not kept:
        raise Problem(
            f"the inputs of launch {index} were not kept: {', '.join(missing)}",
            f"record it with `tracing run {run.info.case} --keep-inputs --launches {index}:{index + 1}`",
        )
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, blob in kept.items():
        file = folder / f"{name}.safetensors"
        file.write_bytes(run.bytes(blob))
        files.append(file)
    facts = folder / "launch.json"
    facts.write_text(json.dumps(_facts(launch, list(kept)), indent=1))
    script = folder / "repro.py"
    script.write_text(_text(run, launch, source))
    return Repro(script, (script, facts, *files), missing)


def _launch(run: Run, index: int) -> KernelLaunch:
    found = [one for one in run.launches() if one.index == index]
    if len(found) != 1:
        why = f"{len(found)} processes of it have one" if found else "it has fewer"
        raise Problem(
            f"{run.path} has no single launch {index}: {why}", f"`tracing show {run.path}` lists them"
        )
    return found[0]


def _kept(run: Run, launch: KernelLaunch) -> dict[str, str]:
    kept = [one for one in run.records(KeptTensor) if (one.launch, one.side) == (launch.index, "before")]
    return {launch.args[one.position].name: one.blob for one in kept}


def _source(run: Run, launch: KernelLaunch) -> str:
    # the function alone, as Triton's decorator takes it; Inductor's own decorators need Inductor's run time
    if launch.kernel.source is None:
        raise Problem(f"the run has no source of {launch.kernel_name}", "kernels written in Python have one")
    tree = ast.parse(run.text(launch.kernel.source))
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    function.decorator_list = [ast.Attribute(ast.Name("triton", ast.Load()), "jit", ast.Load())]
    unknown = sorted(set(_free_names(function)) - set(_IMPORTS) - {"triton"})
    if unknown:
        raise Problem(
            f"{launch.kernel_name} uses {', '.join(unknown)} of its module, which was not recorded",
            f"pass it as a tl.constexpr, or write it into the kernel; the module is {launch.kernel.file}",
        )
    return ast.unparse(function)


def _free_names(function: ast.FunctionDef) -> Iterator[str]:
    arguments = function.args
    bound = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    bound |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    yield from (node.id for node in names if node.id not in bound and not hasattr(builtins, node.id))


def _text(run: Run, launch: KernelLaunch, source: str) -> str:
    imports = "\n".join(line for name, line in _IMPORTS.items() if f"{name}." in source)
    facts = {"index": launch.index, "kernel": launch.kernel_name, "run": run.name}
    return Template(_TEMPLATE.read_text()).substitute(facts, imports=imports, source=source + "\n")


def _facts(launch: KernelLaunch, contents: list[str]) -> dict[str, object]:
    kernel = launch.kernel
    tensors = [arg for arg in launch.args if arg.tensor is not None]
    constants = {name: _literal(name, text) for name, text in kernel.constants.items()}
    return {
        "grid": launch.grid,
        "options": {"num_warps": kernel.num_warps, "num_stages": kernel.num_stages},
        "constants": constants,
        "values": {a.name: a.value for a in launch.args if a.tensor is None and a.name not in constants},
        "storages": {str(arg.storage): _size(tensors, arg) for arg in tensors},
        "contents": contents,
        "tensors": {arg.name: _layout(arg) for arg in tensors},
        "expected": {
            arg.name: arg.after.bits for arg in tensors if arg.after and (arg.writes or arg.modified)
        },
    }


def _literal(name: str, text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise Problem(
            f"the constant {name} was recorded as {text}, which is no literal", "replay it in its own program"
        ) from None


def _size(tensors: list[KernelArg], one: KernelArg) -> int:
    return max(extent(arg.tensor)[1] for arg in tensors if arg.tensor and arg.storage == one.storage)


def _layout(arg: KernelArg) -> dict[str, object]:
    assert arg.tensor is not None
    meta = arg.tensor
    return {"storage": arg.storage, "dtype": meta.dtype, "shape": meta.shape, "stride": meta.stride,
            "offset": meta.offset}  # fmt: skip
