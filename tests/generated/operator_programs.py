"""Random programs of operators in random contexts: modes, transforms, threads, subclasses, errors.

A program is a function of its seed. Some of its operators fail, as their tensors do not fit; it continues.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._debug_mode import DebugMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

Tensor = torch.Tensor
Call: TypeAlias = Callable[[Tensor, Tensor, Any], Any]  # two tensors, a number
Wrapper: TypeAlias = Callable[[Call], Call]
# What an observer of a program can compare: the bits of a tensor, or the message of an error
Result: TypeAlias = tuple[object, ...]

functional = nn.functional
NUMBERS = (0, 1, -2, 3, 1 << 40, True, False, 0.0, -0.0, 0.5, 1e300, float("inf"), float("nan"), 1 + 2j)
DTYPES = (
    torch.float32,
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.int64,
    torch.bool,
    torch.complex64,
)
SHAPES = ((4, 4), (4, 4), (2, 4), (4,), (1,), (), (0, 4), (2, 3, 4))

CALLS: tuple[Call, ...] = (
    lambda x, y, n: x + y,
    lambda x, y, n: x * n,
    lambda x, y, n: n - x,
    lambda x, y, n: x @ y,
    lambda x, y, n: torch.add(x, y, alpha=n),
    lambda x, y, n: torch.sub(x, y, out=torch.zeros(0, dtype=x.dtype)),
    lambda x, y, n: torch.where(x == y, x, n),
    lambda x, y, n: torch.cat([x, y]),
    lambda x, y, n: torch.stack([x, x, y], -1),
    lambda x, y, n: torch.einsum("ij,jk->ik", x, y),
    lambda x, y, n: torch.addcmul(x, x, y, value=n),
    lambda x, y, n: torch.lerp(x, y, n),
    lambda x, y, n: torch.maximum(x, y).eq(n),
    lambda x, y, n: x**n,
    lambda x, y, n: x[y > n],
    lambda x, y, n: x[..., :2].flip(-1),
    lambda x, y, n: x.t().contiguous().view(-1),
    lambda x, y, n: x.reshape(-1)[::2],
    lambda x, y, n: x.unsqueeze(0).expand(2, *x.shape).flatten(0, 1),
    lambda x, y, n: x.sum(-1, keepdim=True).exp(),
    lambda x, y, n: x.softmax(-1).cumsum(0),
    lambda x, y, n: x.sort(-1),
    lambda x, y, n: x.topk(2),
    lambda x, y, n: x.unbind(0),
    lambda x, y, n: x.chunk(2, -1),
    lambda x, y, n: x.unique(),
    lambda x, y, n: x.nonzero(),
    lambda x, y, n: x.to(y.dtype),
    lambda x, y, n: x.conj().imag.neg(),
    lambda x, y, n: x.max(0),
    lambda x, y, n: torch.tril(x).roll(1, 0),
    lambda x, y, n: torch.full_like(x, n),
    lambda x, y, n: torch.randn(3).type_as(x) * torch.rand(1),
    lambda x, y, n: torch.rand(2, generator=torch.Generator().manual_seed(3)),
    lambda x, y, n: torch.tensor([n, n]),
    lambda x, y, n: x.clone().add_(y),
    lambda x, y, n: x.mul_(n),
    lambda x, y, n: x.fill_(n),
    lambda x, y, n: x.copy_(y),
    lambda x, y, n: x[:1].zero_(),
    lambda x, y, n: x.t().clamp_(min=n),
    lambda x, y, n: x.masked_fill_(y > 0, n),
    lambda x, y, n: x.index_put_((torch.tensor([0]),), y[0]),
    lambda x, y, n: x.clone().resize_(9).zero_(),
    lambda x, y, n: x.unsqueeze_(0).squeeze_(0),
    lambda x, y, n: torch._foreach_add([x, y], n),
    lambda x, y, n: torch._foreach_mul_([x.clone(), y.clone()], [n, 2.0]),
    lambda x, y, n: functional.linear(x, y, y[0]),
    lambda x, y, n: functional.layer_norm(x, x.shape[-1:]),
    lambda x, y, n: functional.batch_norm(x, y[0].clone(), y[1].clone(), training=n == 1),
    lambda x, y, n: functional.conv1d(x.unsqueeze(0), y.unsqueeze(1), padding="same"),
    lambda x, y, n: functional.dropout(x, 0.5, training=n == 1),
    lambda x, y, n: functional.scaled_dot_product_attention(x[None], y[None], y[None]),
    lambda x, y, n: functional.cross_entropy(x, y.argmax(-1)),
    lambda x, y, n: functional.pad(x, (1, 0), value=n),
    lambda x, y, n: torch.linalg.qr(x),
    lambda x, y, n: torch.fft.fft(x).abs(),
    lambda x, y, n: x.to_sparse() @ y,
    lambda x, y, n: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize(),
    lambda x, y, n: x.to("meta") + n,
    lambda x, y, n: x.item() if n is True else x.tolist(),
    lambda x, y, n: torch.empty_like(x).copy_(x),
)


class Doubling(TorchDispatchMode):
    """A mode of the program that adds an operator to some."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ops.aten.mul.Tensor else result


CONTEXTS: tuple[Callable[[], AbstractContextManager[Any]], ...] = (
    nullcontext,
    nullcontext,
    torch.no_grad,
    torch.inference_mode,
    lambda: torch.autocast("cpu", torch.bfloat16),
    Doubling,
    DebugMode,
    lambda: FlopCounterMode(display=False),
    torch._subclasses.FakeTensorMode,
)


def plain(call: Call) -> Call:
    return call


def in_thread(call: Call) -> Call:
    def started(*arguments: Any) -> Any:
        results: list[Any] = []

        def run() -> None:
            try:
                results.append(call(*arguments))
            except Exception as error:
                results.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if isinstance(results[0], Exception):
            raise results[0]
        return results[0]

    return started


def with_backward(call: Call) -> Call:
    def differentiated(x: Tensor, y: Tensor, n: Any) -> Any:
        x = x.detach().clone().requires_grad_()
        call(x * 1, y, n).sum().backward()
        return x.grad

    return differentiated


def with_checkpoint(reentrant: bool) -> Wrapper:
    def wrapper(call: Call) -> Call:
        def checkpointed(*arguments: Any) -> Any:
            return checkpoint(call, *arguments, use_reentrant=reentrant)

        return with_backward(checkpointed)

    return wrapper


def in_transform(call: Call) -> Call:
    return lambda x, y, n: torch.func.vmap(torch.func.grad(lambda one: call(one, y, n).sum()))(x)


def in_vmap(call: Call) -> Call:
    return lambda x, y, n: torch.func.vmap(lambda one: call(one, y, n), randomness="different")(x)


def on_subclass(call: Call) -> Call:
    return lambda x, y, n: call(TwoTensor(x, x.clone()), TwoTensor(y, y.clone()), n)


WRAPPERS: tuple[Wrapper, ...] = (
    *[plain] * 8,
    in_thread,
    with_backward,
    with_checkpoint(True),
    with_checkpoint(False),
    in_transform,
    in_vmap,
    on_subclass,
)


def program(seed: int, length: int = 25) -> list[Result]:
    """Run the program of this seed; returns what its operators returned and raised, in their order."""
    choose = random.Random(seed)
    with seeded(seed):
        tensors = [created(choose) for _ in range(4)]
        results: list[Result] = []
        for _ in range(length):
            call, context = choose.choice(WRAPPERS)(choose.choice(CALLS)), choose.choice(CONTEXTS)
            arguments = choose.choice(tensors), choose.choice(tensors), choose.choice(NUMBERS)
            try:
                with context():
                    made = call(*arguments)
            except Exception as error:
                results.append((type(error).__name__, str(error).partition("\n")[0]))
                continue
            for one in made if isinstance(made, (list, tuple)) else [made]:
                results.append(described(one))
                if type(one) is Tensor and one.layout is torch.strided and not one.is_meta:
                    tensors[choose.randrange(len(tensors))] = one
        return results


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def created(choose: random.Random) -> Tensor:
    shape, dtype = choose.choice(SHAPES), choose.choice(DTYPES)
    tensor = (torch.randn(shape) * 4).to(dtype)
    return choose.choice([tensor, tensor.t() if tensor.dim() == 2 else tensor, tensor.requires_grad_(False)])


def described(value: Any) -> Result:
    if type(value) is not Tensor or value.is_meta or value.layout is not torch.strided:
        return (type(value).__name__, value if isinstance(value, (bool, int)) else repr(value)[:200])
    elements = torch.cat([value.detach().resolve_conj().resolve_neg().reshape(-1)])  # adjacent in memory
    return str(value.dtype), value.shape, value.stride(), elements.view(torch.uint8).numpy().tobytes()
