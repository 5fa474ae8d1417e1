"""The outputs of Inductor's kernels that are proven to be overwritten, on the virtual GPU.

Each proven output is filled with other bits before its launch; the results of the program must not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tracing.launch import hooks
from tracing.launch.launch_site import Grid, LaunchSite
from tracing.launch.tensors import tensor_meta
from tracing.launch.whole_writes import WholeWrites
from tracing.model import Argument
from tracing.views import dense
from tracing.virtual_gpu import virtual_gpu


class Overwriter:
    """Fills the proven outputs of each launch."""

    def __init__(self) -> None:
        self.proven: list[str] = []
        self.left: list[str] = []  # other tensors that a kernel only writes

    def before(self, site: LaunchSite, values: Sequence[Any], stream: int, grid: Grid | None) -> None:
        """Receive a launch."""
        compiled = site.compiled()
        roles, addresses = compiled.declared()
        args = [
            Argument(name, roles[name], tensor_meta(value))
            if isinstance(value, torch.Tensor)
            else Argument(name, value=value, addresses=name in addresses)
            for name, value in zip(site.names, values, strict=True)
        ]
        ttir = str(compiled.artefacts["ttir"])
        whole = WholeWrites(ttir, compiled.types).of(grid or site.grid(values), args)
        for arg, value in zip(args, values, strict=True):
            if arg.name in whole:
                value.fill_(True if value.dtype == torch.bool else 77)
            if arg.declared == "out" and arg.tensor:
                kind = "" if dense(arg.tensor) else " with gaps"
                (self.proven if arg.name in whole else self.left).append(f"{site.name} {arg.name}{kind}")

    def after(self, token: None) -> None:
        """Nothing to do."""


def trained(function: Callable[..., torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    result = function(*inputs)
    gradients = torch.autograd.grad(result.square().sum(), [one for one in inputs if one.requires_grad])
    return [result, *gradients]


def overwritten(
    function: Callable[..., torch.Tensor], *shapes: tuple[int, ...], dynamic: bool = False
) -> Overwriter:
    torch.manual_seed(0)
    torch._dynamo.reset()
    inputs, seen = [torch.randn(shape, requires_grad=True) for shape in shapes], Overwriter()
    with virtual_gpu(), hooks.installed(seen):
        results = trained(torch.compile(function, dynamic=dynamic), inputs)
    torch._dynamo.reset()
    for result, expected in zip(results, trained(function, inputs), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-3)
    return seen


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, weight.shape, weight, bias)


CASES: list[tuple[Callable[..., torch.Tensor], list[tuple[int, ...]]]] = [
    (layer_norm, [(33, 65), (65,), (65,)]),
    (layer_norm, [(5, 4100), (4100,), (4100,)]),
    (lambda x: F.gelu(x), [(37, 65)]),
    (lambda x: x.softmax(-1), [(37, 65)]),
    (lambda x: x.softmax(-1), [(4, 5000)]),
    (lambda x: x.t().contiguous() + 1, [(37, 65)]),
    (lambda x: x.transpose(1, 2).contiguous().sin(), [(8, 37, 65)]),
    (lambda x: x.view(4, 16, 4, 8).permute(0, 2, 1, 3).contiguous().cos(), [(4, 16, 32)]),
    (lambda x, bias: (x + bias).relu(), [(37, 65), (65,)]),
    (lambda x: x.exp().sum(0), [(5000, 65)]),
    (lambda x: F.pad(x, (1, 2)) * 2, [(5, 7)]),
]


@pytest.mark.parametrize(("function", "shapes"), CASES)
@pytest.mark.parametrize("dynamic", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_every_output_is_proven(function: Any, shapes: Any, dynamic: bool) -> None:
    seen = overwritten(function, *shapes, dynamic=dynamic)

    assert seen.proven
    assert seen.left == []


def test_a_part_of_a_wider_tensor_is_not_proven() -> None:
    seen = overwritten(lambda x, y: torch.cat([x.sin(), y.cos()], 1), (37, 65), (37, 3))

    assert [one for one in seen.left if one.endswith("with gaps")] == seen.left != []


class Block(nn.Module):
    """A block of a transformer: 2 sequences of 24 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(2))
        self.qkv, self.projected = nn.Linear(64, 192), nn.Linear(64, 64)
        self.widened, self.narrowed = nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.norms[0](x)).split(64, -1)
        q, k, v = (part.reshape(2, 24, 4, 16).transpose(1, 2) for part in parts)
        attended = (q @ k.transpose(-1, -2) / 4).softmax(-1) @ v
        x = x + self.projected(attended.transpose(1, 2).reshape(2, 24, 64))
        return x + self.narrowed(F.gelu(self.widened(self.norms[1](x))))


@pytest.mark.soak
def test_in_a_transformer_block_all_outputs_without_gaps_are_proven() -> None:
    # no attention that Inductor recognises, which is no Triton kernel
    with torch._inductor.config.patch(pattern_matcher=False):
        seen = overwritten(Block(), (2, 24, 64))

    print(
        f"{len(seen.proven)} of {len(seen.proven) + len(seen.left)} outputs of a transformer block are proven"
    )
    assert len(seen.proven) >= 10
    assert all(one.endswith("with gaps") for one in seen.left)
