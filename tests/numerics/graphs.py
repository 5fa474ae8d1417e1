"""Random graphs of pointwise operators, reductions, views and in-index operators, each step as a function."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
import torch.nn.functional as functional

Tensor: TypeAlias = torch.Tensor
ROWS, COLUMNS = 12, 24


@dataclass(frozen=True)
class Step:
    """One operation on two of the values so far."""

    operation: str
    first: int
    second: int
    number: float  # a constant of the operation
    index: int


def _put(x: Tensor, y: Tensor, s: Step) -> Tensor:
    x = x.clone()
    x[s.index % ROWS].add_(y[0], alpha=s.number)
    return x


def _cumulated(x: Tensor, y: Tensor, s: Step) -> Tensor:
    x = x.clone(memory_format=torch.contiguous_format)
    x.view(-1)[s.index : s.index + 8].mul_(s.number)
    return x * y.sigmoid()


OPERATIONS: dict[str, Callable[[Tensor, Tensor, Step], Tensor]] = {
    "add": lambda x, y, s: x + s.number * y,
    "mul": lambda x, y, s: x * y.tanh() * s.number,
    "div": lambda x, y, s: x / (y.abs() + s.number),
    "sin": lambda x, y, s: torch.sin(x * s.number),
    "exp": lambda x, y, s: torch.exp(-x.abs() * s.number) + y,
    "gelu": lambda x, y, s: functional.gelu(x) * s.number,
    "silu": lambda x, y, s: functional.silu(x * s.number),
    "softmax": lambda x, y, s: torch.softmax(x * s.number, -1),
    "log_softmax": lambda x, y, s: torch.log_softmax(x * s.number, 0),
    "layer_norm": lambda x, y, s: functional.layer_norm(x, (COLUMNS,), eps=s.number * 1e-3) + y,
    "mean": lambda x, y, s: x - s.number * x.mean(-1, keepdim=True),
    "var": lambda x, y, s: x / (x.var(0, keepdim=True) + s.number).sqrt(),
    "amax": lambda x, y, s: x - s.number * y.amax(-1, keepdim=True),
    "matmul": lambda x, y, s: x @ (y.t() @ x) * (s.number / ROWS),
    "cumsum": lambda x, y, s: x.cumsum(-1) * s.number / COLUMNS,
    "transpose": lambda x, y, s: (x.t() * s.number).contiguous().t(),
    "roll": lambda x, y, s: x.roll(s.index % COLUMNS, 1) * s.number,
    "where": lambda x, y, s: torch.where(x > 0, x * s.number, y),
    "gather": lambda x, y, s: x.gather(1, (torch.arange(COLUMNS).expand(ROWS, -1) + s.index) % COLUMNS) + y,
    "masked": lambda x, y, s: x * (torch.arange(COLUMNS) < 8 + s.index % 8) + s.number,
    "put": _put,
    "cumulated": _cumulated,
}  # fmt: skip
Graph: TypeAlias = Sequence[Step]


def graph(seed: int) -> Graph:
    """The graph of a seed: two inputs, then up to eight steps."""
    rng = random.Random(seed)
    return [
        Step(
            rng.choice(list(OPERATIONS)), rng.randrange(n), rng.randrange(n), round(rng.uniform(0.5, 1.5), 3),
            rng.randrange(64),
        )
        for n in range(2, 2 + rng.randint(1, 8))
    ]  # fmt: skip


def faulty(graph: Graph, seed: int) -> Graph:
    """The graph with one planted fault: another constant, operator, index or mask in its last step."""
    rng, last = random.Random(seed), graph[-1]
    kind = rng.choice(["constant", "operator", "index"])
    if kind == "constant":
        last = replace(last, number=last.number * 1.25)
    elif kind == "operator":
        last = replace(last, operation=rng.choice([name for name in OPERATIONS if name != last.operation]))
    else:
        last = replace(last, index=last.index + 1)
    return [*graph[:-1], last]


def inputs(seed: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(ROWS, COLUMNS, generator=generator).to(dtype) for _ in range(2))  # type: ignore[return-value]


def run(graph: Graph, x: Tensor, y: Tensor) -> list[Tensor]:
    """Every value of the graph except the two inputs."""
    values = [x, y]
    for step in graph:
        values.append(OPERATIONS[step.operation](values[step.first], values[step.second], step))
    return values[2:]
