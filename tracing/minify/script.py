"""Write a small graph as a script that needs torch, safetensors and, for kernels, Triton; nothing else.

repro.py             the graph as Python, its inputs, and the check that fails
repro.safetensors    the inputs, and the results in exact arithmetic
"""

from __future__ import annotations

import importlib.metadata
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.fx import GraphModule

from tracing.analyze.minify.trial import Trial
from tracing.minify import script_parts as parts
from tracing.minify.graph_results import flat, graph_results, weights
from tracing.minify.predicate import Fails, GraphPredicate, OtherKernels, Unstable, Violates
from tracing.minify.small_graph import SmallGraph
from tracing.minify.source_text import SourceText
from tracing.numerics.reference import reference
from tracing.numerics.verdict import FARTHEST, FARTHEST_NARROW, TYPICAL, rounding

_BUILT_IN = ("torch", "device", "inf", "nan", "NoneType")  # names of every FX graph's code


def write_script(
    small: SmallGraph, predicate: GraphPredicate, trial: Trial, path: Path, *, interpreted: bool
) -> list[str]:
    """Write the script and its data; returns the names of objects that the graph uses but have no source.

    trial       -- how the graph fails
    interpreted -- without a GPU, Inductor's Triton kernels are executed by Triton's interpreter
    """
    source, data = SourceText(interpreted=interpreted), dict[str, torch.Tensor]()
    classes = "\n\n\n".join(_classes(small.module, "Graph", source))
    check = _check(small, predicate, trial, data)
    inputs, weighted = _inputs(small, data), _weights(small, data)
    uses_triton = "triton" in source.imports
    device = next((one.device.type for one in small.inputs.contents.values()), _device_of(small))
    text = parts.HEAD.format(
        title=f"A graph of torch.compile that fails.\n\n{textwrap.fill(_plain(trial.text), 100)}",
        file=path.name,
        what=f"It needs torch and safetensors{', and Triton' if uses_triton or interpreted else ''}.",
        torch=torch.__version__,
        triton=f" and Triton {importlib.metadata.version('triton')}" if uses_triton or interpreted else "",
        device="Triton's interpreter" if interpreted else device,
        interpreted=parts.INTERPRETED if interpreted else "",
        imports="\n".join(_imports(source, with_data=bool(data))),
        device_type=device,
        functions="\n\n\n".join(["", "", *filter(None, source.definitions.values())]).rstrip(),
        classes=classes,
        data=f'DATA = load_file(Path(__file__).parent / "{path.stem}.safetensors")' if data else "DATA = {}",
        inputs=inputs,
        names=[node.name for node in small.module.graph.nodes if node.op == "placeholder"],
        backward=parts.BACKWARD.format(weights=weighted) if small.backward else "",
    )
    path.write_text("\n".join(line.rstrip() for line in (text + check).splitlines()) + "\n")
    if data:
        save_file(data, path.with_suffix(".safetensors"))
    return source.missing


def _classes(module: GraphModule, name: str, source: SourceText) -> Iterator[str]:
    code = module.graph.python_code("self", verbose=False)
    for called, value in code.globals.items():
        if called not in _BUILT_IN and re.search(rf"\b{called}\b", code.src):
            source.add(called, value)
    attributes = []
    for node in module.graph.nodes:
        if node.op in ("get_attr", "call_module"):
            inner = getattr(module, node.target, None) if "." not in node.target else None
            if isinstance(inner, GraphModule):
                yield from _classes(inner, f"{name}_{node.target}", source)
                attributes.append(f"        self.{node.target} = {name}_{node.target}()")
            else:
                source.missing.append(node.target)
    made = ["    def __init__(self):", "        super().__init__()", *dict.fromkeys(attributes), ""]
    body = [f"    {line}" if line.strip() else "" for line in code.src.strip().splitlines()]
    yield "\n".join([f"class {name}(torch.nn.Module):", *(made if attributes else []), *body])


def _imports(source: SourceText, *, with_data: bool) -> Iterator[str]:
    if with_data:
        yield "from safetensors.torch import load_file"
    yield "from torch import device, inf, nan  # names that code of FX graphs uses"
    yield from (line for name, line in source.imports.items() if name not in _BUILT_IN)


def _inputs(small: SmallGraph, data: dict[str, torch.Tensor]) -> str:
    lines = []
    for number, content in small.inputs.contents.items():
        dtypes = {one.dtype for one in small.inputs.stored.values() if one.storage == number}
        data[f"storage {number}"] = _typed(content, dtypes)
        lines.append(f'    storage_{number} = DATA["storage {number}"].to(DEVICE).clone()')
    lines.append("    return [")
    for node in small.module.graph.nodes:
        if node.op == "placeholder" and node.name in small.inputs.numbers:
            lines.append(f"        {small.inputs.numbers[node.name]!r},")
        elif node.op == "placeholder":
            one = small.inputs.stored[node.name]
            grad = ", grad=True" if one.grad else ""
            layout = f"{one.shape}, {one.stride}, {one.offset}{grad}"
            lines.append(f"        tensor(storage_{one.storage}, {one.dtype}, {layout}),  # {node.name}")
    return "\n".join([*lines, "    ]"])


def _typed(content: torch.Tensor, dtypes: set[torch.dtype]) -> torch.Tensor:
    # readable, where all inputs of the storage have one dtype
    dtype = next(iter(dtypes))
    fits = len(dtypes) == 1 and not dtype.is_complex and content.numel() % dtype.itemsize == 0
    return (content.view(dtype) if fits else content).cpu()


def _weights(small: SmallGraph, data: dict[str, torch.Tensor]) -> str:
    if not (small.backward and small.gradients):
        return "{}"
    outputs = flat(small.module(*small.arguments()))
    lines = []
    for number, one in enumerate(weights(small, outputs)):
        if not bool((one == 1).all()):
            data[f"weight {number}"] = one.detach().cpu().contiguous()
            lines.append(f'{number}: DATA["weight {number}"].to(DEVICE)')
    return f"{{{', '.join(lines)}}}"


def _check(small: SmallGraph, predicate: GraphPredicate, trial: Trial, data: dict[str, torch.Tensor]) -> str:
    dynamic = small.dynamic or None
    if isinstance(predicate, Unstable):
        return parts.UNSTABLE.format(times=predicate.times, dynamic=dynamic)
    if isinstance(predicate, OtherKernels):
        return parts.KERNELS.format(settings=dict(predicate.settings), dynamic=dynamic)
    if isinstance(predicate, Violates):
        violation, node = predicate.violations(small)[0]
        tensors = flat(node.meta.get("val"))
        layouts = [(str(one.dtype), str(tuple(one.shape)), str(tuple(one.stride()))) for one in tensors]
        requires = f"{violation.found}, required: {violation.required}"
        return parts.VIOLATES.format(
            violation=(str(node.target), layouts), requires=requires, dynamic=dynamic
        )
    if isinstance(predicate, Fails) and trial.kind != "differs":
        return parts.RAISES.format(dynamic=dynamic)
    names = list(trial.results)
    farthest = _expected(small, names, data)
    return parts.DIFFERS.format(results=names, farthest=farthest, typical=TYPICAL, dynamic=dynamic)


def _expected(small: SmallGraph, names: list[str], data: dict[str, torch.Tensor]) -> float:
    # writes exact results where the referee has them; gives the roundings that one element may be away
    results = graph_results(small, small.module)
    try:
        exact = reference(lambda: graph_results(small, small.module))
    except Exception:  # as of a program that float64 cannot follow: the script compares with eager
        return FARTHEST
    narrow = False
    for name in names:
        result = results.get(name)
        if (
            isinstance(result, torch.Tensor)
            and name in exact
            and not (exact[name].missing or result.is_complex())
        ):
            floating = result.is_floating_point()
            spread = rounding(exact[name], result.dtype) if floating else exact[name].spread
            data[f"exact {name}"] = exact[name].exact.detach().cpu().contiguous().clone()
            data[f"rounding {name}"] = spread.detach().cpu().contiguous().clone()
            narrow |= floating and result.dtype.itemsize <= 2
    return FARTHEST_NARROW if narrow else FARTHEST


def _device_of(small: SmallGraph) -> str:
    devices = {str(value) for node in small.module.graph.nodes for value in node.kwargs.values()}
    return "cuda" if any(one.startswith("cuda") for one in devices) else "cpu"


def _plain(text: str) -> str:
    # for a docstring
    return text.replace("\\", "/").replace('"', "'")
