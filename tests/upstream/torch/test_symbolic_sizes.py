"""What torch knows of a symbolic size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tracing.upstream.torch import symbolic_sizes
from tracing.upstream.torch.symbolic_sizes import example, known


def test_the_contract_holds_with_the_installed_versions() -> None:
    symbolic_sizes.contract()


def test_a_range_that_the_user_states_bounds_a_size_and_no_guard_is_added() -> None:
    answers: list[object] = []

    def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        size = next(one for one in inputs if isinstance(one, torch.SymInt))
        answers.append(example(size))
        answers.extend(known(one) for one in (size <= 64, size > 64, size == 12, size > 12))
        return graph.forward

    x = torch.ones(12)
    torch._dynamo.mark_dynamic(x, 0, min=8, max=64)
    compiled = torch.compile(lambda one: one * 2, backend=backend)
    compiled(x)
    compiled(torch.ones(20))
    torch.compiler.reset()

    assert answers == [12, True, False, None, False]
