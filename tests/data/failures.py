"""Programs that fail while they are compiled, or in generated code, by name."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch._inductor.lowering import register_lowering

from tracing import Workload

if not hasattr(torch.ops.failures, "turned"):  # a process may load this file repeatedly

    @torch.library.custom_op("failures::turned", mutates_args=())
    def turned(x: torch.Tensor) -> torch.Tensor:
        return x.t().clone(memory_format=torch.contiguous_format).t()

    @turned.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    @torch.library.custom_op("failures::odd", mutates_args=())
    def odd(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @odd.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    @register_lowering(torch.ops.failures.odd.default)
    def _(x: object) -> None:
        raise NotImplementedError("odd numbers are not lowered\nby this test")


@triton.jit
def squared(
    value,
):
    return value * exponent  # noqa: F821


@triton.jit
def undefined(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, squared(tl.load(x + at)))


@triton.jit
def größe(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))


@triton.jit
def turned_over(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.flip(tl.load(x + at), 5))


@triton.jit
def nonsense(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.inline_asm_elementwise(
        "nonsense.f32 $0, $1;", "=f,f", [tl.load(x + at)], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out + at, value)


@triton.jit
def accumulated(x, out, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(2):  # Inductor passes the factor as float64, and Triton as float32
        total += tl.load(x + at) * factor
    tl.store(out + at, total)


@triton.jit
def stored_far(pointers, value):
    tl.store(pointers + (1 << 30), value)


@triton.jit
def calling(x, out, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    stored_far(out + at, tl.load(x + at) * factor)


def by_inductor(x: torch.Tensor, kernel: object = accumulated, factor: float = 0.5) -> torch.Tensor:
    if not torch.compiler.is_compiling():
        return x
    out = torch.empty_like(x)
    kernel[(1,)](x, out, factor, BLOCK=16)  # type: ignore[index]
    return out


def launched(kernel: object, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=16)  # type: ignore[index]
    return out


def underived(x: torch.Tensor) -> torch.Tensor:
    at = torch.zeros(4, 4, dtype=torch.int64, device=x.device)
    return x.scatter(0, at, x, reduce="add") + x.sin()


def erased(graph: torch.fx.Graph) -> None:
    for node in graph.nodes:
        if node.target is torch.ops.aten.mul.Tensor:
            graph.erase_node(node)


def by_a_pass(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).sin()


PROGRAMS = {
    "frontend": lambda x: launched(undefined, x),
    "name": lambda x: launched(größe, x),
    "of triton": lambda x: launched(turned_over, x),
    "copied": by_inductor,
    "called": lambda x: by_inductor(x, calling, 2.0),
    "ptxas": lambda x: launched(nonsense, x),
    "lowering": lambda x: torch.relu(torch.ops.failures.odd(x.sin()) * 2),
    "graph pass": by_a_pass,
    "derivative": lambda x: underived(x.detach().requires_grad_()),
    "hook": lambda x: x.sin() * 2,
    "generated": lambda x: torch.relu(torch.ops.failures.turned(x + 1) * 2),
}


def hook(metadata: object) -> None:
    raise ValueError("the user's hook")


def build(device: str, name: str = "frontend") -> Workload:
    if name == "hook":
        triton.knobs.runtime.launch_exit_hook.add(hook)
    options = {"post_grad_custom_post_pass": erased} if name == "graph pass" else None
    return Workload(PROGRAMS[name], (torch.rand(4, 4, device=device),), options=options)
