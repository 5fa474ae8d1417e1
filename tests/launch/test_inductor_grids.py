"""The grids of Inductor's launches, as its autotuner computes them itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from tracing.upstream.inductor.autotuner import around_launches, grid_function
from tracing.virtual_gpu import virtual_gpu


@triton.jit
def add_one(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + 1, i < n)


def by_hand(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    add_one[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel(), BLOCK=64)
    return out


def transposed(x: torch.Tensor) -> torch.Tensor:
    return (x.t().contiguous() + x.sum()).exp()


def several(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x + 1, x[:5].sin(), x[:, :3].contiguous() * 2


class Thread:
    hidden = 0


@pytest.mark.parametrize("function", [by_hand, transposed, several, lambda x: x.softmax(-1).sum(0)])
@pytest.mark.parametrize("options", [{}, {"combo_kernels": True}, {"triton.cooperative_reductions": True}])
def test_a_grid_is_that_of_the_autotuner(function: Any, options: dict[str, Any]) -> None:
    grids = []

    def launch(original: Any, tuner: Any, args: Any, stream: int, kwargs: Any, /) -> Any:
        result = original(tuner, *args, stream=stream, **kwargs)
        launcher = tuner.launchers[0]
        upstream = tuner._interpret_args_grid(args, launcher.config)[1]
        grids.append((grid_function(tuner, launcher)(args), tuple(map(int, upstream))))
        return result

    with virtual_gpu(), around_launches(launch, Thread()):
        torch._dynamo.reset()
        compiled = torch.compile(function, dynamic=True, options=options)
        for shape in ((37, 70), (150, 9), (64, 64)):
            compiled(torch.rand(shape))

    assert len(grids) >= 3
    assert all(ours == theirs for ours, theirs in grids)
