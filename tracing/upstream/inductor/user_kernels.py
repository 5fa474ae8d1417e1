"""The user's kernels that torch.compile copies into the code that it generates."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch._higher_order_ops.triton_kernel_wrap import (
    get_mutated_tensors,
    kernel_side_table,
    triton_kernel_wrapper_functional,
    triton_kernel_wrapper_mutation,
)
from torch.fx import Node

from tracing.upstream.contract import require
from tracing.upstream.inductor.code import is_generated
from tracing.upstream.triton.jit import JITFunction


@dataclass(frozen=True, slots=True)
class FunctionLines:
    """The lines of a function from its `def` on."""

    file: str
    line: int
    count: int


def copied_functions(function: Any) -> list[tuple[FunctionLines, FunctionLines]]:
    """Each function of a generated kernel that is a copy of the user's, and the user's: kernel and helpers.

    function -- the generated JITFunction; the list is empty if no kernel that torch.compile met in this
                process has its text
    """
    original = next((one for one in _met() if _is_copy(function, one)), None)
    if original is None:
        return []
    users, pairs = original.fn.__globals__, [(function, original)]
    helpers = ((one, users.get(name)) for name, one in function.fn.__globals__.items() if one is not function)
    pairs += [(one, helper) for one, helper in helpers if _is_copy(one, helper)]
    return [(_lines(copy), _lines(user)) for copy, user in pairs]


def user_kernel(function: Any) -> FunctionLines | None:
    """The lines of the user's kernel that is launched as `function`; None: Inductor wrote it.

    function -- a JITFunction, the interpreter's, or a copy of the user's in generated code
    """
    code = getattr(getattr(function, "fn", None), "__code__", None)
    if code is None:  # of one that a worker compiled
        return None
    if is_generated(code.co_filename):
        return next((user for _, user in copied_functions(function)), None)
    return _lines(function)


def line_of_user(file: str, line: int) -> tuple[str, int] | None:
    """The line of the user's file that a line of a generated file is a copy of; None: of none."""
    text = Path(file).read_text(errors="replace")
    for kernel in _met():
        for user in (kernel, *kernel.fn.__globals__.values()):
            start = text.find(user.src) if isinstance(user, JITFunction) else -1
            first = text.count("\n", 0, start) + 1
            if start >= 0 and first <= line <= first + user.src.count("\n"):
                own = _lines(user)
                return own.file, own.line + line - first
    return None


def launched_kernel(node: Any) -> tuple[Any, tuple[int, ...] | str, dict[str, Any], dict[str, Any]] | None:
    """The kernel that a node of Dynamo's graph launches, its grid, its constants, and its other arguments.

    A grid that depends on the chosen configuration is the code of a function `grid`. None: the node launches
    nothing, or with descriptors of TMA or with a grid that the graph computes.
    """
    if node.target is not triton_kernel_wrapper_mutation or node.kwargs["tma_descriptor_metadata"]:
        return None
    kernel: Any = kernel_side_table.get_kernel(node.kwargs["kernel_idx"])
    constants = dict(kernel_side_table.get_constant_args(node.kwargs["constant_args_idx"]))
    grids: list[Any] = [tuple(one) for one in node.kwargs["grid"]]
    if not all(isinstance(size, int) for one in grids for size in one):
        return None
    if len(grids) == 1:
        return kernel, grids[0], constants, dict(node.kwargs["kwargs"])
    # The module asks for the GPU when it is imported (torch 2.11); forked children could not use it then.
    from torch._inductor.codegen.wrapper import user_defined_kernel_grid_fn_code

    name, code = user_defined_kernel_grid_fn_code("kernel", kernel.configs, grids)
    return kernel, f"{code}\ngrid = {name}\n", constants, dict(node.kwargs["kwargs"])


def launched_name(node: Any) -> str | None:
    """The name of the kernel that a node of Dynamo's or of an ATen graph launches; None: it launches none."""
    if node.target not in (triton_kernel_wrapper_mutation, triton_kernel_wrapper_functional):
        return None
    return str(jit_function(kernel_side_table.get_kernel(node.kwargs["kernel_idx"])).__name__)


def written_nodes(node: Any) -> list[str] | None:
    """The nodes whose memory the kernel that a node launches in place writes; None: it launches none so.

    Torch decides by the kernel's TTIR; what it cannot decide counts as written. None as well in a graph of
    Dynamo's, which has no values of the kind that this needs. Some 10 ms.
    """
    if node.target is not triton_kernel_wrapper_mutation:
        return None
    given = node.kwargs["kwargs"]
    values = {name: one.meta.get("val") if isinstance(one, Node) else one for name, one in given.items()}
    if any(values[name] is None for name, one in given.items() if isinstance(one, Node)):
        return None
    numbers = (node.kwargs["kernel_idx"], node.kwargs["constant_args_idx"])
    written = get_mutated_tensors(*numbers, values, node.kwargs["tma_descriptor_metadata"])
    return [given[name].name for name in written]


def jit_function(kernel: Any) -> Any:
    """The function that Triton compiles: a kernel without its autotuner and heuristics."""
    while not isinstance(kernel, JITFunction) and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return kernel


def _met() -> Iterator[Any]:
    kernels: list[Any] = list(kernel_side_table.id_to_kernel.values())
    return map(jit_function, kernels)


def _is_copy(copy: Any, user: Any) -> bool:
    both = isinstance(copy, JITFunction) and isinstance(user, JITFunction)
    return both and copy is not user and (copy.__name__, copy.src) == (user.__name__, user.src)


def _lines(function: Any) -> FunctionLines:
    decorators = itertools.takewhile(lambda text: not text.lstrip().startswith("def "), function.raw_src)
    above = len(list(decorators))
    code = function.fn.__code__
    return FunctionLines(code.co_filename, code.co_firstlineno + above, len(function.raw_src) - above)


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require(isinstance(kernel_side_table.id_to_kernel, dict), "the user's kernels of torch.compile by number")
    require(isinstance(getattr(JITFunction, "src", None), property), "the text of a kernel from its `def` on")
