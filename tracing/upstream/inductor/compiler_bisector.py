"""Answer the queries of torch's CompilerBisector in memory: decompositions, passes and lowerings as steps.

torch calls CompilerBisector.disable_subsystem, which reads a file that also affects later compiles of other
processes; here the answers end with the context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.compiler_bisector import CompilerBisector
from torch._inductor.graph import GraphLowering
from torch._library.utils import is_builtin

from tracing.upstream.contract import require_methods, require_parameters
from tracing.upstream.inductor.compile_steps import StepChoice, is_inlined, node_text, target_text
from tracing.upstream.patch import Method, patched, replaced
from tracing.upstream.python_functions import name_outside_torch

DECOMPOSITIONS, LOWERINGS, INLINING = "decompositions", "lowerings", "inlining"
NO_ATEN = "operators that ATen lacks"  # recorded as steps, and always lowered
PRE_GRAD, JOINT, POST_GRAD = "pre-grad passes", "joint-graph passes", "post-grad passes"
_PARTS = {
    "decomposition": DECOMPOSITIONS,
    "pre_grad_passes": PRE_GRAD,
    "joint_graph_passes": JOINT,
    "post_grad_passes": POST_GRAD,
    "lowerings": LOWERINGS,
}
_OPERATOR = re.compile(r"<OpOverload\(op='([^']+)', overload='([^']+)'\)>")


@contextmanager
def subsystems_asked(steps: StepChoice) -> Iterator[None]:
    """While active, each decomposition, graph pass, lowering and inlined node is a step."""
    lowered: list[Any] = []  # the FX nodes that are being lowered, the innermost last

    def disable_subsystem(
        owner: type, backend: str, subsystem: str, debug_info: Callable[[], str] | None = None
    ) -> bool:
        part = _PARTS.get(subsystem)
        if part is None or debug_info is None:
            return False
        label = _OPERATOR.sub(r"\1.\2", debug_info())
        if part != LOWERINGS or not lowered:
            return not steps.make(part, label, detail=name_outside_torch(getattr(config, label, None)))
        return not _node_made(steps, part, lowered[-1])

    def around_run_node(original: Method) -> Method:
        def run_node(graph: Any, node: Any) -> Any:
            lowered.append(node)
            if node.op == "call_function" and _lacks_aten(node.target):
                _node_made(steps, NO_ATEN, node)
            try:
                result = original(graph, node)
            finally:
                lowered.pop()
            inlined = node.op == "call_function" and is_inlined(result)
            if inlined and not _node_made(steps, INLINING, node):
                result.realize()
            return result

        return run_node

    with (
        replaced(CompilerBisector, "disable_subsystem", classmethod(disable_subsystem)),
        patched(GraphLowering, "run_node", around_run_node),
    ):
        yield


def _lacks_aten(target: Any) -> bool:
    # torch's own condition under which ATen executes the operator instead
    if isinstance(target, torch._ops.HigherOrderOperator):
        return True
    return isinstance(target, torch._ops.OpOverload) and not is_builtin(target)


def _node_made(steps: StepChoice, part: str, node: Any) -> bool:
    return steps.make(part, node.name, kind=target_text(node), detail=node_text(node), nodes=[node.name])


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    require_parameters(CompilerBisector.disable_subsystem, "backend", "subsystem", "debug_info")
    require_methods(GraphLowering, "run_node")
