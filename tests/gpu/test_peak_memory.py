"""On a GPU: the estimate of a graph's peak memory is close to what torch measures while ATen executes it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Interpreter

from tracing.backend.liveness import peak
from tracing.model import Workload
from tracing.program.case import load_case
from tracing.upstream.inductor.backend_compile import aot_compiled
from tracing.upstream.torch.pytrees import tree_leaves

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("backward", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("batch", [1, 8, 32])
@pytest.mark.parametrize("name", ["bert", "resnet18", "ssm"])
def test_the_estimate_is_within_a_tenth_of_the_measured_peak(name: str, batch: int, backward: bool) -> None:
    if name == "bert":
        pytest.importorskip("transformers", reason="needs the package transformers")
    case = load_case(f"{name}:batch={batch},backward={str(backward).lower()}")
    workload = case.build("cuda")
    graphs: list[GraphModule] = []

    def execute(graph: GraphModule, part: str) -> Callable[[list[Any]], Any]:
        graphs.append(graph)
        return lambda inputs: Interpreter(graph).boxed_run(inputs)

    def backend(graph: GraphModule, inputs: Sequence[Any]) -> Any:
        return aot_compiled(graph, inputs, execute)

    torch.compiler.reset()
    measured = measured_peak(workload, torch.compile(workload.fn, backend=backend, fullgraph=True))
    estimate = max(int(use.total) for graph in graphs if (use := peak(graph.graph)) is not None)

    print(f"{name} {batch} {'training' if backward else 'inference'}: {estimate / measured:.3f}")
    assert abs(estimate / measured - 1) <= 0.1


def measured_peak(workload: Workload, compiled: Callable[..., Any]) -> int:
    """Bytes of tensors that are alive at once, without the workspaces that libraries keep."""
    step(workload, compiled)  # libraries allocate their workspaces
    gc.collect()
    own = sum({one.data_ptr(): one.nbytes() for one in storages(workload)}.values())
    workspaces = torch.cuda.memory_allocated() - own
    torch.cuda.reset_peak_memory_stats()
    step(workload, compiled)
    return torch.cuda.max_memory_allocated() - workspaces


def step(workload: Workload, compiled: Callable[..., Any]) -> None:
    output = compiled(*workload.args, **workload.kwargs)
    if workload.backward:
        torch.autograd.backward([one.sum() for one in tensors(output) if one.requires_grad])
        workload.fn.zero_grad()  # type: ignore[attr-defined]


def storages(workload: Workload) -> Iterator[torch.UntypedStorage]:
    model: Any = workload.fn
    for one in (*model.parameters(), *model.buffers(), *tensors((workload.args, dict(workload.kwargs)))):
        yield one.untyped_storage()


def tensors(value: Any) -> Iterator[torch.Tensor]:
    return (one for one in tree_leaves(value) if isinstance(one, torch.Tensor))
