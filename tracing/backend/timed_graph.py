"""Execute an ATen graph operator by operator, and measure the time of each."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node

from tracing.backend.node_values import is_operator_call
from tracing.upstream.inductor.user_kernels import launched_name
from tracing.upstream.torch.operator_schemas import is_operator, schema_of


class TimedGraph(Interpreter):
    """A graph as a function of a list of inputs, which it clears; `seconds` holds the times of the last call.

    An operator that neither writes its arguments nor draws random numbers runs twice, and only the second run
    is measured: the first one initialises libraries. On a GPU the device is synchronised after each operator.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.seconds: dict[str, float] = {}  # by node
        self.calls = 0

    def __call__(self, inputs: list[Any]) -> Any:
        self.calls += 1
        return self.boxed_run(inputs)

    def run_node(self, n: Node) -> Any:
        if not is_operator_call(n):
            return super().run_node(n)
        if _is_repeatable(n):
            super().run_node(n)
        _wait()
        started = time.perf_counter()
        result = super().run_node(n)
        _wait()
        self.seconds[n.name] = time.perf_counter() - started
        return result


def _is_repeatable(node: Node) -> bool:
    operator: Any = node.target
    if launched_name(node) is not None:
        return is_operator_call(node)  # an ATen graph gives the kernel copies of what it writes
    if not is_operator(operator) or torch.Tag.nondeterministic_seeded in operator.tags:
        return False
    return not any(one.alias_info and one.alias_info.is_write for one in schema_of(operator).arguments)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
