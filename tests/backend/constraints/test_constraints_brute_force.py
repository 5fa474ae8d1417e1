"""For random graphs and limits, verdicts on fake tensors equal those of a run on real ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx import Graph, GraphModule, Interpreter, Node
from torch.fx.experimental.proxy_tensor import make_fx

from tracing.backend.constraints import (
    DtypeConstraint,
    LayoutConstraint,
    MemoryConstraint,
    PeakMemoryConstraint,
    ShapeConstraint,
    UnsupportedOpsConstraint,
)
from tracing.backend.constraints.constraint import Constraint
from tracing.backend.graph_check import check_graph
from tracing.backend.liveness import memory_use

Values = dict[Node, list[torch.Tensor]]

STEPS: list[Callable[[torch.Tensor], Any]] = [
    lambda x: x * 2,
    lambda x: x.transpose(0, -1) if x.dim() else x + 1,
    lambda x: x.transpose(0, -1).contiguous() if x.dim() else x.clone(),
    lambda x: x.sum(0) if x.dim() else x.exp(),
    lambda x: x.double(),
    lambda x: x.half() + 1,
    lambda x: x.flatten() + 1,
    lambda x: x.unsqueeze(0).expand(3, *x.shape),
    lambda x: torch.cat([x, x]) if x.dim() else x.sin(),
    lambda x: x[1:] if x.dim() and x.shape[0] > 1 else x.abs(),
    lambda x: torch.max(x, dim=0) if x.dim() and x.shape[0] else (x.cos(),),
    lambda x: torch.split(x, 2) if x.dim() and x.shape[0] else (x,),
]


def random_graph(seed: int, steps: int) -> tuple[GraphModule, torch.Tensor]:
    """A graph of ATen operators, each of which reads an earlier value; some return several."""
    draw = random.Random(seed)
    shape = [draw.choice([1, 2, 3, 4, 8]) for _ in range(draw.randint(1, 3))]
    x = torch.rand(shape)
    x = x.transpose(0, -1) if draw.random() < 0.3 else x

    def program(x: torch.Tensor) -> Any:
        choose = random.Random(seed)
        values = [x]
        for _ in range(steps):
            given = STEPS[choose.randrange(len(STEPS))](choose.choice(values[-4:]))
            values += given if isinstance(given, (tuple, list)) else [given]
        return values[-1], choose.choice(values)

    return make_fx(program, tracing_mode="fake")(x), x


class RealRun(Interpreter):
    """Executes a graph, keeps all its values, and counts the bytes that are alive at each operator."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.alive: list[int] = []
        self.values: dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        self.values[n] = super().run_node(n)
        if n.op == "call_function" and "getitem" not in str(n.target):
            later = {*self.module.graph.nodes} - {*self.values} | {n}  # type: ignore[union-attr]
            held = [one for one in self.values if one.op == "placeholder"]
            read = [one for one in self.values if one is n or {*one.users} & later]
            storages = {
                tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
                for one in [*held, *read]
                for tensor in tensors(self.values[one])
            }
            self.alive.append(sum(storages.values()))
        return self.values[n]


def tensors(value: Any) -> list[torch.Tensor]:
    return (
        [value] if isinstance(value, torch.Tensor) else [*value] if isinstance(value, (list, tuple)) else []
    )


def expected(constraint: Constraint, module: GraphModule, run: RealRun) -> set[str]:
    """The nodes that violate, decided on real tensors by torch's own questions."""

    def refused(node: Node, tensor: torch.Tensor) -> bool:
        match constraint:
            case ShapeConstraint(alignment=alignment):
                return any(size != 1 and size % alignment for size in tensor.shape)
            case DtypeConstraint(allowed_dtypes=names):
                integers = any(not getattr(torch, str(one)).is_floating_point for one in names)
                named = str(tensor.dtype).removeprefix("torch.") in names
                return not named and (integers or tensor.dtype.is_floating_point)
            case MemoryConstraint(max_bytes=limit):
                return tensor.numel() * tensor.element_size() > limit
            case LayoutConstraint(views=views):
                inputs = [one for given in node.all_input_nodes for one in tensors(run.values[given])]
                shared = {one.untyped_storage().data_ptr() for one in inputs}
                view = tensor.untyped_storage().data_ptr() in shared
                return (views or not view) and not tensor.is_contiguous()
            case UnsupportedOpsConstraint(operators=names):
                return node.op == "call_function" and str(node.target).split(".")[1] in names
        raise AssertionError(constraint)

    return {
        node.name
        for node in module.graph.nodes
        if node.op != "output" and "getitem" not in str(node.target)
        if any(refused(node, one) for one in tensors(run.values[node]))
    }


CONSTRAINTS = st.one_of(
    st.sampled_from([1, 2, 3, 4]).map(ShapeConstraint),
    st.sets(st.sampled_from(["float32", "float64", "float16", "int64"]), min_size=1).map(DtypeConstraint),
    st.integers(0, 200).map(MemoryConstraint),
    st.booleans().map(lambda views: LayoutConstraint(views=views)),
    st.sets(st.sampled_from(["mul", "cat", "clone", "max", "split", "exp"])).map(
        lambda names: UnsupportedOpsConstraint(sorted(names))
    ),
)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 8), CONSTRAINTS)
def test_a_node_violates_exactly_if_its_real_tensors_do(
    seed: int, steps: int, constraint: Constraint
) -> None:
    module, x = random_graph(seed, steps)
    run = RealRun(module)
    run.run(x)

    violations = check_graph(module.graph, [constraint]).violations

    assert all(one.decided for one in violations)
    assert {one.node for one in violations} == expected(constraint, module, run)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(0, 2000))
def test_the_bytes_that_are_alive_are_those_of_a_real_run(seed: int, steps: int, limit: int) -> None:
    module, x = random_graph(seed, steps)
    run = RealRun(module)
    run.run(x)

    assert [use.total for use in memory_use(module.graph)] == run.alive
    violation = PeakMemoryConstraint(limit).check_graph(module.graph)
    assert (violation is not None) == (max(run.alive, default=0) > limit)


def test_a_graph_without_operators_needs_no_memory_at_once() -> None:
    assert PeakMemoryConstraint(0).check_graph(Graph()) is None
