"""Operators that only a called graph has, as a branch of cond, and kernels that the program launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from generated.aten_graphs import aten_graphs
from torch.fx import GraphModule

from tracing.backend.constraints import (
    PeakMemoryConstraint,
    ShapeConstraint,
    SupportedOpsConstraint,
    UnsupportedOpsConstraint,
)
from tracing.backend.constraints.constraint import Constraint
from tracing.backend.graph_check import check_graph, coverage
from tracing.backend.timed_graph import TimedGraph
from tracing.program.device import Device
from tracing.upstream.inductor.backend_compile import Part, aot_compiled


def branching(x: torch.Tensor) -> torch.Tensor:
    chosen = torch.cond(x.sum() > 0, lambda x: torch.linalg.lu(x)[1] + 1, lambda x: x - 1, (x,))
    return chosen * 2  # type: ignore[no-any-return]


def test_an_operator_of_a_branch_is_a_violation_and_the_cond_is_unsupported() -> None:
    module = aten_graphs(branching, torch.eye(4))["inference"]

    check = check_graph(module.graph, [UnsupportedOpsConstraint(["linalg.lu"])])

    (violation,) = check.violations
    assert (violation.node, violation.operator) == ("true_graph_0.linalg_lu", "aten.linalg_lu.default")
    assert violation.python.startswith("test_graph_check.py:")
    assert coverage(module, check, 0).operators == {"cond": 1}


@triton.jit
def tripled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) * 3, mask=inside)


def launching(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    tripled[(1,)](x.sin(), out, 6, BLOCK=8)
    return out + 1


@pytest.fixture(scope="module")
def launches() -> Iterator[GraphModule]:
    """An ATen graph that launches a kernel of its own; torch.compile knows the kernel until it is reset."""
    graphs: list[GraphModule] = []

    def keep(graph: GraphModule, part: Part) -> Callable[..., Any]:
        graphs.append(graph)
        return lambda inputs: graph(*inputs)

    with Device("sm_90").active():
        torch.compile(launching, backend=lambda graph, inputs: aot_compiled(graph, inputs, keep))(
            torch.ones(6)
        )
        yield graphs[0]
    torch.compiler.reset()


@pytest.mark.parametrize(
    ("constraints", "texts"),
    [
        ([UnsupportedOpsConstraint(["triton.tripled"])], ["triton.tripled"]),
        ([UnsupportedOpsConstraint([tripled])], ["triton.tripled"]),
        ([UnsupportedOpsConstraint(["triton"])], ["triton.tripled of triton"]),
        ([UnsupportedOpsConstraint(["triton.other"])], []),
        ([SupportedOpsConstraint(["sin", "add", "empty_like"])], ["triton.tripled"]),
        ([SupportedOpsConstraint(["sin", "add", "empty_like", "triton"])], []),
        ([ShapeConstraint(4)], ["result out_ptr: size 6 of dimension 0, shape (6,)"]),
    ],
    ids=str,
)
def test_a_kernel_of_the_program_is_an_operator(
    constraints: Sequence[Constraint], texts: list[str], launches: GraphModule
) -> None:
    check = check_graph(launches.graph, constraints)

    mine = [one for one in check.violations if one.operator == "triton.tripled"]
    assert [one.found for one in mine] == texts
    assert coverage(launches, check, 0).operators.get("triton.tripled", 0) == len(texts)


def test_the_result_of_a_kernel_takes_memory_and_its_launch_time(launches: GraphModule) -> None:
    # input, sine, empty_like, and the copy that the kernel writes
    assert PeakMemoryConstraint(95).check_graph(launches.graph) is not None
    assert PeakMemoryConstraint(96).check_graph(launches.graph) is None
    timed = TimedGraph(launches)
    (result,) = timed([torch.ones(6)])

    assert torch.allclose(result, torch.ones(6).sin() * 3 + 1)
    assert len(timed.seconds) == 4
