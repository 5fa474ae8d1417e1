"""Write a small graph as a script that needs torch, safetensors and, for kernels, Triton; nothing else.

repro.py             the graph as Python, its inputs, and the check that fails
repro.safetensors    the inputs, and the results in exact arithmetic
"""

from __future__ import annotations

import importlib.metadata
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.fx import GraphModule

from tracing.analyze.minify.trial import ScriptForm, Trial
from tracing.minify.graph_results import flat, graph_results, weights
from tracing.minify.predicate import Fails, GraphPredicate, OtherKernels, Unstable, Violates
from tracing.minify.small_graph import SmallGraph
from tracing.minify.source_text import SourceText
from tracing.numerics.one_rounding import rounding
from tracing.numerics.reference import reference
from tracing.numerics.verdict import FARTHEST, FARTHEST_NARROW, TYPICAL, TYPICAL_NARROW
from tracing.upstream.inductor import script_parts as parts
from tracing.upstream.torch.symbolic_sizes import example

_BUILT_IN = ("torch", "device", "inf", "nan", "NoneType")  # names of every FX graph's code
_DEVICES = {(True, False): "Triton's interpreter", (False, True): "sm_90, without launches"}


def write_script(
    small: SmallGraph, predicate: GraphPredicate, trial: Trial, path: Path, form: ScriptForm, case: str
) -> list[str]:
    """Write the script and its data; returns the names of objects that the graph uses but have no source.

    trial -- how the graph fails
    case  -- the case of the graph, by its path, with its options
    """
    source, data = SourceText(interpreted=form.interpreted), dict[str, torch.Tensor]()
    classes = "\n\n\n".join(_classes(small.module, "Graph", source))
    check = _check(small, predicate, trial, data, form)
    inputs, more = _inputs(small, data), _more(small, trial, data)
    uses_triton = form.interpreted or form.compile_only or "triton" in source.imports
    device = next((one.device.type for one in small.inputs.contents.values()), _device_of(small))
    captured = isinstance(predicate, Violates) and "triton" in source.imports and device == "cpu"
    before = (
        parts.INTERPRETED if form.interpreted else parts.CAPTURED if captured or form.compile_only else ""
    )
    text = parts.HEAD.format(
        title=f"A graph of torch.compile that fails.\n\n{textwrap.fill(_plain(trial.text), 100)}",
        file=path.name,
        what=_needs(form, uses_triton=uses_triton),
        case=parts.CASE.format(case=case, device=device) if form.loads_case else "",
        torch=torch.__version__,
        triton=f" and Triton {importlib.metadata.version('triton')}" if uses_triton else "",
        device=_DEVICES.get((form.interpreted, form.compile_only), device),
        interpreted=before + (parts.COMPILED if form.compile_only else ""),
        path="from pathlib import Path\n" if data else "",
        imports="\n".join(_imports(source, classes, with_data=bool(data))),
        device_line=f"DEVICE = {device!r}\n" if "DEVICE" in inputs + more + check else "",
        functions="".join(f"\n\n{one}\n" for one in source.definitions.values()),
        classes=classes,
        data=(parts.DATA.format(stem=path.stem) if data else "DATA = {}\n\n\n" if "DATA" in check else "")
        + (parts.TENSOR if small.inputs.stored else ""),
        inputs=inputs,
        named=parts.NAMED.format(names=_placeholders(small)) if more else "",
        more=more,
    )
    path.write_text("\n".join(line.rstrip() for line in (text + check).splitlines()) + "\n")
    if data:
        save_file(data, path.with_suffix(".safetensors"))
    return source.missing


def _needs(form: ScriptForm, *, uses_triton: bool) -> str:
    text = f"It needs torch and safetensors{', and Triton' if uses_triton else ''}."
    if form.loads_case:
        return f"{text}\nDebug Triton loads the case for it, which changes what the graph is compiled with."
    return text


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


def _compiling(small: SmallGraph, form: ScriptForm) -> str:
    # further arguments of torch.compile, each after a comma; the case has those that no text can spell
    texts = {name: repr(value) for name, value in small.literal_options.items()}
    if form.loads_case:
        texts = {name: texts.get(name, f"CASE.{name}") for name in small.compiling}
    texts |= {"dynamic": "True"} if small.dynamic else {}
    return "".join(f", {name}={text}" for name, text in texts.items())


def _placeholders(small: SmallGraph) -> list[str]:
    return [node.name for node in small.module.graph.nodes if node.op == "placeholder"]


def _more(small: SmallGraph, trial: Trial, data: dict[str, torch.Tensor]) -> str:
    # results that the script needs in addition to outputs
    text = ""
    if any(name.startswith("storage of ") for name in trial.results):
        text += parts.STORAGES
    if small.backward:
        text += parts.BACKWARD.format(weights=_weights(small, data))
    if any(name.endswith(" afterwards") for name in trial.results):
        text += parts.AFTERWARDS
    return text


def _imports(source: SourceText, classes: str, *, with_data: bool) -> Iterator[str]:
    if with_data:
        yield "from safetensors.torch import load_file"
    used = [name for name in ("device", "inf", "nan") if re.search(rf"(?<![.\w]){name}\b", classes)]
    if used:
        yield f"from torch import {', '.join(used)}  # as code of FX graphs writes them"
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
    return "\n".join([*lines, "    ]"]) if _placeholders(small) else "    return []"


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


def _check(
    small: SmallGraph,
    predicate: GraphPredicate,
    trial: Trial,
    data: dict[str, torch.Tensor],
    form: ScriptForm,
) -> str:
    compiling = _compiling(small, form)
    if isinstance(predicate, Unstable):
        return parts.UNSTABLE.format(times=predicate.times, compiling=compiling)
    if isinstance(predicate, OtherKernels):
        return parts.KERNELS.format(settings=dict(predicate.settings), compiling=compiling)
    if isinstance(predicate, Violates):
        violation, node = predicate.violations(small)[0]
        tensors = flat(node.meta.get("val"))
        layouts = [(str(one.dtype), _numbers(one.shape), _numbers(one.stride())) for one in tensors]
        requires = f"{violation.found}, required: {violation.required}"
        dynamic = ", dynamic=True" if small.dynamic else ""  # the backend is another one
        return parts.VIOLATES.format(
            violation=(str(node.target), layouts), requires=requires, compiling=dynamic
        )
    if isinstance(predicate, Fails) and trial.kind != "differs":
        return (parts.RAISES_COMPILING if form.compile_only else parts.RAISES).format(compiling=compiling)
    names = list(trial.results)
    if not form.exact:
        return parts.FAR.format(results=names, compiling=compiling)
    farthest, typical = _expected(small, names, data)
    return parts.DIFFERS.format(results=names, farthest=farthest, typical=typical, compiling=compiling)


def _expected(small: SmallGraph, names: list[str], data: dict[str, torch.Tensor]) -> tuple[float, float]:
    # writes the referee's exact results; returns the limits of an element, and of the mean, in roundings
    results = graph_results(small, small.module)
    try:
        exact = reference(lambda: graph_results(small, small.module))
    except Exception:  # as of a program that float64 cannot follow: the script compares with eager
        return FARTHEST, TYPICAL
    narrow = False
    for name in names:
        result = results.get(name)
        if (
            isinstance(result, torch.Tensor)
            and name in exact
            and not (exact[name].missing or result.is_complex())
        ):
            floating = result.is_floating_point()
            every = torch.ones_like(exact[name].spread, dtype=torch.bool)
            spread = rounding(exact[name], every, result.dtype)
            data[f"exact {name}"] = exact[name].exact.detach().cpu().contiguous().clone()
            data[f"rounding {name}"] = spread.detach().cpu().contiguous().clone()
            narrow |= floating and result.dtype.itemsize <= 2
    return (FARTHEST_NARROW, TYPICAL_NARROW) if narrow else (FARTHEST, TYPICAL)


def _device_of(small: SmallGraph) -> str:
    devices = {str(value) for node in small.module.graph.nodes for value in node.kwargs.values()}
    return "cuda" if any(one.startswith("cuda") for one in devices) else "cpu"


def _plain(text: str) -> str:
    # for a docstring
    return text.replace("\\", "/").replace('"', "'")


def _numbers(sizes: Sequence[int | torch.SymInt]) -> str:
    # symbols have other names in each compile
    return str(tuple(map(example, sizes)))
