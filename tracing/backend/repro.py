"""Write a script that compiles one graph of Dynamo with the same backend and constraints.

The script holds the graph as Python, inputs of the same shapes, strides and dtypes with random elements, and
the constraints. It needs torch and this project, and neither the program nor its data.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from tracing.backend.constraints.constraint import Constraint
from tracing.upstream.torch.symbolic_sizes import example

_HEAD = '''"""Compile a graph of Dynamo with {backend}: it violates constraints."""

import torch
from torch import device, inf, nan  # the names that code of FX graphs uses
import tracing.backend
{imports}


def rand(shape, stride, dtype, device, requires_grad):
    """A tensor of this layout with random elements."""
    size = 1 + sum((n - 1) * s for n, s in zip(shape, stride)) if 0 not in shape else 0
    values = torch.randint(0, 2, (size,), dtype=torch.uint8, device=device).to(dtype)
    if dtype.is_floating_point:
        values = torch.rand(size, device=device).to(dtype)
    return values.as_strided(shape, stride).requires_grad_(requires_grad)


class Graph(torch.nn.Module):
    def __init__(self):
        super().__init__()
{attributes}

{code}

constraints = [
{constraints}
]
inputs = [
{inputs}
]
'''
_TAIL = {
    "mock_backend": "backend = tracing.backend.eager_backend(strict=True, constraints=constraints)\n",
    "aot_mock_backend": "backend = tracing.backend.aot_mock_backend(strict=True, constraints=constraints)\n",
}
_RUN = """result = torch.compile(Graph(), backend=backend, dynamic={dynamic})(*inputs)
outputs = [one for one in result if isinstance(one, torch.Tensor) and one.requires_grad]
if outputs:
    torch.autograd.backward(outputs, [torch.ones_like(one) for one in outputs])
"""


def repro_script(
    graph: GraphModule, inputs: Sequence[Any], backend: str, constraints: Sequence[Constraint]
) -> str:
    """The text of the script.

    graph   -- of Dynamo, before AOTAutograd
    inputs  -- of the graph, real or fake
    backend -- "mock_backend" or "aot_mock_backend"
    """
    code = graph.graph.python_code("self", verbose=False).src
    text = _HEAD.format(
        backend=backend,
        imports=_imports(constraints),
        attributes=_indented(_attributes(graph), 8) or "        pass",
        code=_indented(code.splitlines(), 4),
        constraints=_indented((f"{one!r}," for one in constraints), 4),
        inputs=_indented((f"{_input(one)}," for one in inputs), 4),
    )
    dynamic = any(isinstance(one, torch.SymInt) for one in inputs)
    return text + _TAIL[backend] + _RUN.format(dynamic=dynamic or None)


def _imports(constraints: Sequence[Constraint]) -> str:
    # a class of the program's own script cannot be imported: the reader is asked to
    types = sorted({(type(one).__module__, type(one).__qualname__) for one in constraints})
    lines = [f"from {module} import {name}" for module, name in types if module != "__main__"]
    own = [f"# define {name} here, as {sys.argv[0]} does" for module, name in types if module == "__main__"]
    return "\n".join(lines + own)


def _attributes(graph: GraphModule) -> Iterable[str]:
    for node in graph.graph.nodes:
        if node.op == "get_attr" and "." not in node.target:
            value = getattr(graph, node.target)
            if isinstance(value, torch.Tensor):
                yield f"self.{node.target} = {_input(value)}"
            else:
                yield f"self.{node.target} = None  # {type(value).__name__}: not written"


def _input(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(example(value) if isinstance(value, torch.SymInt) else value)
    shape, stride = (tuple(example(one) for one in sizes) for sizes in (value.shape, value.stride()))
    grad = value.requires_grad and value.dtype.is_floating_point
    return f"rand({shape}, {stride}, {value.dtype}, {str(value.device)!r}, {grad})"


def _indented(lines: Iterable[str], count: int) -> str:
    return "\n".join(" " * count + line if line.strip() else "" for line in lines)
