"""AOTAutograd and Inductor, called from a backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from tracing.upstream.inductor import backend_compile


def test_the_contract_holds_with_the_installed_versions() -> None:
    backend_compile.contract()


def test_inductor_compiles_the_backward_when_it_is_first_called() -> None:
    parts: list[str] = []

    @contextmanager
    def around(aten: torch.fx.GraphModule, part: str) -> Iterator[None]:
        parts.append(part)
        yield

    def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return backend_compile.inductor_compiled(graph, inputs, around)

    torch.compiler.reset()
    x = torch.ones(3, requires_grad=True)
    result = torch.compile(lambda one: one.sin(), backend=backend)(x)
    assert parts == ["forward"]
    result.sum().backward()
    torch.compiler.reset()

    assert parts == ["forward", "backward"]
    assert x.grad is not None and torch.allclose(x.grad, x.detach().cos())
