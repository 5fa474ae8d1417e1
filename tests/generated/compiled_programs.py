"""Random programs under torch.compile, and their observable behaviour: results, graphs, recompilations.

A program is a chain of steps that its seed chooses, called on several inputs, some with a backward pass. What
the steps have in common is that a recorder could disturb them: graph breaks, kernels that Dynamo traces and
kernels that it does not, autograd functions, transforms, modes, saved-tensor hooks, random numbers.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import torch
import torch._dynamo
import torch._inductor.config as inductor
import triton
import triton.language as tl
from handmade.records import new_run
from torch._dynamo.utils import clear_compilation_metrics, counters, get_compilation_metrics
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from tracing.record.autotuning.winners import Winners
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.passes.recorder import PassRecorder
from tracing.virtual_gpu import virtual_gpu

Tensor: TypeAlias = torch.Tensor
Step: TypeAlias = Callable[[Tensor], Tensor]
COLUMNS = 16


@triton.jit
def _scale(x_ptr, out_ptr, n, by, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * by, mask=at < n)


@triton.jit
def _add_row_sum(x_ptr, out_ptr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x + tl.sum(x, 0) / COLUMNS)


def scaled(x: Tensor, by: float) -> Tensor:
    """[*] times a number, by a hand-written kernel; Dynamo traces the launch."""
    x = x.contiguous()
    out = torch.empty_like(x)
    _scale[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel(), by, BLOCK=32)
    return out


class Launcher:
    """Launches through `getattr` and a closure, where Dynamo gives up and runs Triton's own frames."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, x: Tensor) -> Tensor:
        torch._dynamo.graph_break()
        self.count += 1
        out = torch.empty_like(x)
        launch = _add_row_sum.__getitem__((x.shape[0],))
        launch(x.contiguous(), out, COLUMNS=COLUMNS)
        return out


class Normed(torch.autograd.Function):
    """An autograd function that launches, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shape: Sequence[int], weight: Tensor) -> Tensor:
        out = torch.empty_like(x)
        _add_row_sum[(x.shape[0],)](x.contiguous(), out, COLUMNS=COLUMNS, num_warps=1, num_ctas=1)
        ctx.save_for_backward(x, weight)
        return out * weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        out = torch.zeros((2, *gradient.shape), dtype=gradient.dtype, device=weight.device)
        grid = lambda meta: (triton.cdiv(gradient.numel(), meta["BLOCK"]),)  # noqa: E731
        _scale[grid](gradient, out[0], gradient.numel(), 0.5, BLOCK=32, num_ctas=1)
        return out.sum(0) * weight, None, (gradient * x).sum(0)


@torch.library.custom_op("random_programs::doubled", mutates_args=())
def doubled(x: Tensor) -> Tensor:
    """An operator of a library of its own that launches a kernel."""
    return scaled(x, 2.0)


@doubled.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


doubled.register_autograd(lambda ctx, gradient: gradient * 2)


class _Calls(TorchFunctionMode):
    """Counts what passes it."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):
    """Counts what passes it."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


@dataclass
class Parts:
    """What the steps of one program share."""

    weight: Tensor
    square: Tensor
    launcher: Launcher = field(default_factory=Launcher)
    counted: list[int] = field(default_factory=list)  # what modes and hooks of the program's own saw

    @torch._dynamo.disable
    def observed(self, mode: Any, x: Tensor) -> Tensor:
        with mode:
            out = scaled(x.detach(), 1.5) + x
        self.counted.append(mode.count)
        return out

    @torch._dynamo.disable
    def transformed(self, x: Tensor) -> Tensor:
        out = torch.empty_like(self.square)

        def launching(y: Tensor) -> Tensor:
            _scale[(8,)](
                self.square, out, out.numel(), 2.0, BLOCK=32
            )  # inside of a transform, on plain tensors
            return (y.sin() * out[0]).sum()

        return x + torch.func.grad(launching)(x.detach())

    def hooked(self, x: Tensor) -> Tensor:
        def pack(saved: Tensor) -> Tensor:
            self.counted.append(saved.numel())
            return saved

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
            return torch.tanh(x) * x


def _steps(parts: Parts, rng: random.Random) -> list[Step]:
    number = round(rng.uniform(0.5, 1.5), 3)
    at = rng.randrange(1, COLUMNS)
    return [
        lambda x: torch.sin(x) * number,
        lambda x: torch.nn.functional.gelu(x) + parts.weight,
        lambda x: x.relu().clamp(max=number),
        lambda x: torch.softmax(x, -1),
        lambda x: x - x.mean(0, keepdim=True),
        lambda x: x / (1 + x.abs().amax(-1, keepdim=True)),
        lambda x: torch.nn.functional.layer_norm(x, (COLUMNS,), parts.weight),
        lambda x: x @ parts.square,
        lambda x: torch.cat([x[:, at:], x[:, :at]], 1),
        lambda x: x.t().contiguous().t() + x.roll(1, 0),
        lambda x: x.clone().add_(number).mul_(parts.weight),
        lambda x: torch.nn.functional.dropout(x, 0.25),
        lambda x: x + torch.rand_like(x),
        lambda x: x * 2 if x.sum() > 0 else x - 1,
        lambda x: x * x.detach().mean().item(),
        lambda x: scaled(x, number) if not x.requires_grad else x * number,
        lambda x: parts.launcher(x.detach()) + x,
        lambda x: Normed.apply(x, (COLUMNS,), parts.weight),  # type: ignore[no-untyped-call]
        lambda x: torch._dynamo.disable(lambda y: Normed.apply(y, (COLUMNS,), parts.weight))(x),  # type: ignore
        doubled,
        lambda x: checkpoint(lambda y: torch.tanh(y @ parts.square), x, use_reentrant=False),
        lambda x: torch.func.vmap(lambda row: row.cumsum(0))(x),
        lambda x: x + torch.func.grad(lambda y: (y.sin() * parts.weight).sum())(x.detach()),
        parts.transformed,
        lambda x: x + parts.observed(_Calls(), x),
        lambda x: x + parts.observed(_Operators(), x),
        parts.hooked,
        lambda x: torch.where(x > 0, x, torch.zeros((), dtype=x.dtype)),
    ]  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """What can be seen of one program."""

    results: tuple[bytes, ...] = ()
    error: str = ""
    counted: tuple[int, ...] = ()
    graphs: int = 0
    compiled: Counter[str] = field(default_factory=Counter)  # how often Dynamo compiled each function
    random_state: bytes = b""


def run(seed: int) -> Seen:
    """Run the program of a seed, compiled from scratch."""
    torch._dynamo.reset()
    torch._C._autograd._saved_tensors_hooks_enable()  # a failed torch.func.grad leaves them disabled
    counters.clear()
    clear_compilation_metrics()
    rng = random.Random(seed)
    torch.manual_seed(seed)
    weight = torch.rand(COLUMNS).requires_grad_(rng.random() < 0.5)
    parts = Parts(weight, torch.rand(COLUMNS, COLUMNS))
    known = _steps(parts, rng)
    chain = [known[rng.randrange(len(known))] for _ in range(rng.randint(2, 5))]
    rows = rng.sample((16, 24, 32, 48), rng.randint(1, 2))
    gradients, dynamic = rng.random() < 0.6, rng.choice((None, None, True))

    def function(x: Tensor) -> Tensor:
        for step in chain:
            x = step(x)
        return x

    compiled = torch.compile(function, dynamic=dynamic)
    results: list[Tensor] = []
    error = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for count in rows:
                x = torch.randn(count, COLUMNS).requires_grad_(gradients)
                out = compiled(x)
                if out.requires_grad:
                    out.square().sum().backward()
                results += [out.detach(), *(t.grad for t in (x, weight) if t.grad is not None)]
        except Exception as failure:
            error = f"{type(failure).__name__}: {str(failure).splitlines()[0] if str(failure) else ''}"
    bits = tuple(tensor.numpy().tobytes() for tensor in results)
    graphs = counters["stats"]["unique_graphs"]
    metrics = get_compilation_metrics()
    compiles = Counter(f"{one.co_filename}:{one.co_firstlineno} {one.co_name}" for one in metrics)
    state = torch.get_rng_state().numpy().tobytes()
    return Seen(bits, error, tuple(parts.counted), graphs, compiles, state)


def _compile_kernels() -> None:
    # Triton compiles a kernel once in a process: whichever run is first would run more of Triton's own frames
    x, weight = torch.rand(16, COLUMNS).requires_grad_(), torch.rand(COLUMNS)
    Launcher()(scaled(x.detach(), 2.0))
    Normed.apply(x, (COLUMNS,), weight).sum().backward()  # type: ignore[no-untyped-call]


def run_twice(seed: int, folder: Path) -> tuple[Seen, Seen, int]:
    """A program as it is and while everything is recorded, on a virtual GPU; and the launches recorded."""
    writer = new_run(folder)
    recorder = LaunchRecorder(writer)
    with virtual_gpu(), inductor.patch(force_disable_caches=True):
        _compile_kernels()
        bare = run(seed)
        with PassRecorder(writer), Winners(writer), recorder:
            recorded = run(seed)
    writer.close()
    return bare, recorded, recorder.recorded
