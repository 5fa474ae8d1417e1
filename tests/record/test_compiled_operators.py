"""The compiled form of the recorder's dispatch mode makes the records that its Python form makes.

Each program runs once, under two recordings at the same time: both see the same addresses.
"""

from __future__ import annotations

import random
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from handmade.records import INFO
from recorded.both_forms import in_both_forms, operators
from recorded.host_gpu import host_gpu
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import TorchDispatchMode

import tracing
from tracing import store
from tracing.launch import hooks
from tracing.model import LaunchLine, NotCovered, OperatorDigests, OperatorSignature, StepSelection
from tracing.native.extension import extension
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.operator_calls import OperatorFacts
from tracing.virtual_gpu import virtual_gpu

TIMES = 3  # the compiled form records from the second or third time on


def model() -> nn.Module:
    torch.manual_seed(0)
    parts = [nn.Conv1d(2, 3, 3, padding=1), nn.BatchNorm1d(3), nn.GELU(), nn.Linear(8, 8), nn.Dropout(0.5)]
    return nn.Sequential(*parts, nn.LayerNorm(8), nn.Linear(8, 4))


def trained(optimizer: type[torch.optim.Optimizer], **options: Any) -> Callable[[], Callable[[], object]]:
    def program() -> Callable[[], object]:
        module, x = model(), torch.randn(2, 2, 8)
        steps = optimizer(module.parameters(), lr=0.1, **options)  # type: ignore[call-arg]

        def step() -> None:
            steps.zero_grad()
            loss = nn.functional.cross_entropy(module(x).flatten(0, 1), torch.arange(6) % 4)
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            steps.step()

        return step

    return program


def compiled() -> Callable[[], object]:
    torch.compiler.reset()
    module = torch.compile(nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)))
    x = torch.randn(4, 8)
    return lambda: module(x).sum().backward()


def in_place() -> object:
    x, out = torch.randn(4, 4), torch.empty(0)
    x.add_(1).mul_(x.t().clone()).clamp_(min=0.0)
    x[1:3].zero_()
    torch.mm(x, x, out=out)
    torch.cumsum(x, 0, out=out)
    x.fill_(2).masked_fill_(x > 1, 3.0)
    torch._foreach_add_([x, out], [1.0, 2.0])
    return x.unsqueeze_(0).resize_(2, 32).squeeze_()


def views() -> object:
    x = torch.randn(4, 6)
    parts = x.t().reshape(3, 8).split(2)
    flat = x.reshape(24), x.t().contiguous(), x.expand(2, 4, 6).flatten(), x.view(2, 12)[0]
    return parts, flat, x.detach().narrow(0, 1, 2), x.as_strided((2, 2), (1, 2)).clone(), x.unbind()


def without_gradients() -> object:
    x = torch.randn(4, 6, requires_grad=True)
    with torch.inference_mode():
        y = x.reshape(24), x.t().reshape(24), nn.functional.dropout(x, 0.5, training=False)
        z = nn.functional.linear(x, torch.randn(2, 6)), torch.einsum("ij,kj->ik", x, x)
    with torch.no_grad():
        return y, z, x.matmul(x.t()), nn.functional.softmax(x, -1)


def mixed_precision() -> object:
    x, w = torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        (x @ w).softmax(-1).sum().backward()
    return w.grad


def transforms() -> object:
    def loss(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ w).sum()

    w, x = torch.randn(4, 2), torch.randn(3, 4)
    gradients = torch.func.vmap(torch.func.grad(loss), (None, 0))(w, x)
    return (
        gradients,
        torch.func.jvp(lambda x: x.sin(), (x,), (x,)),
        torch.func.functionalize(lambda x: x.clone().view(12).add_(1))(x),
    )


def custom() -> object:
    twice = torch.ops.tracing_compiled.twice
    x = torch.randn(3, requires_grad=True)
    twice(x).sum().backward()
    torch.ops.tracing_compiled.clear(x.grad)
    return torch.ops.tracing_compiled.same(x.detach(), [1, 2], "text", None)


def subclasses() -> object:
    both = TwoTensor(torch.ones(2), torch.ones(2)).mul_(2) + 1
    sparse = torch.eye(3).to_sparse()
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    return (
        both,
        sparse @ torch.ones(3, 3),
        nested + 1,
        quantized.dequantize(),
        torch.ones(2, device="meta") + 1,
    )


def randomness() -> object:
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(3, generator=generator), torch.randn(3), torch.randperm(4), torch.empty(3).uniform_()
    return x, torch.full((2,), True), torch.arange(3.0), torch.tensor([1, 2]), torch.empty(2).bernoulli_(0.3)


def complex_numbers() -> object:
    x = torch.randn(4, dtype=torch.complex64)
    return (
        x.conj() * (1 + 2j),
        x.conj().resolve_conj(),
        x.imag.neg(),
        torch.fft.fft(x).abs(),
        x.conj().imag + 1,
    )


def changing_sizes() -> object:
    x = torch.tensor([0, 1, 1])
    return (
        x.nonzero(),
        x[x > 0],
        torch.unique(x),
        [torch.ones(n) + n for n in range(3)],
        x.repeat_interleave(x),
    )


def exceptions() -> object:
    with pytest.raises(RuntimeError):
        torch.mm(torch.ones(2, 2), torch.ones(3, 3))
    return torch.ones(2) * True, torch.ones(2) * 2, torch.ones(2) * 2.0, torch.ones(2) * -0.0


def threads() -> object:
    def work() -> None:
        x = torch.randn(4, requires_grad=True)
        (x * 2).sum().backward()

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    return work()


class Doubling(TorchDispatchMode):
    """A mode of the program that adds an operator to each one."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ops.aten.sin.default else result


def modes() -> object:
    with Doubling(), Doubling():  # type: ignore[no-untyped-call, unused-ignore]
        x = torch.ones(2).sin()
    with hooks.hidden():
        x.exp()
    with torch._C._DisableTorchDispatch():
        x.exp()
    with torch._subclasses.FakeTensorMode():
        torch.ones(3) + 1
        torch.func.vmap(torch.ones(3).type_as)(torch.ones(2))  # prim::device, which the dispatcher lacks
    return (
        torch.utils.checkpoint.checkpoint(torch.sin, x.requires_grad_(), use_reentrant=False).sum().backward()
    )


def repeated(call: Callable[[], object]) -> Callable[[], Callable[[], object]]:
    return lambda: call


CALLS: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = [
    torch.add,
    torch.mul,
    lambda x, y: x.t(),
    lambda x, y: x.mul_(0.5),
    lambda x, y: x.copy_(y),
    lambda x, y: torch.sub(x, y, alpha=2, out=torch.empty(0)),
    lambda x, y: torch.cat([x[:2], y[2:]]),
    lambda x, y: torch.where(x > 0, y, 1.0),
    lambda x, y: x.view(-1)[::2].sum() * y,
    lambda x, y: x[:1].add_(1) + y,
    lambda x, y: torch.stack([x, y]).mean(0),
    lambda x, y: x.to(torch.float64).softmax(-1).float(),
    lambda x, y: x.reshape(16).narrow(0, 0, 16).view(4, 4).clamp(-1, 1),
]


def random_calls() -> object:
    """Random operators on random tensors, some of which share memory."""
    choose = random.Random(5)
    tensors = [torch.randn(4, 4) for _ in range(3)]
    for _ in range(60):
        call = choose.choice(CALLS)
        with choose.choice([nullcontext, torch.no_grad, torch.inference_mode])():
            tensors.append(call(choose.choice(tensors[-3:]).clone(), choose.choice(tensors).clone()))
    return tensors


def changing_numbers() -> Callable[[], object]:
    """Each call has other floating-point numbers, some of which are defaults of their arguments."""
    numbers = iter([[0.0, 1.0], [-0.0, 1e-300], [float("nan"), float("inf")], [1.0, 0.5]])

    def step() -> object:
        a, b = next(numbers)
        x = torch.ones(2)
        torch._foreach_addcdiv_([x, x], [x, x], [x, x], scalars=[a, b])
        custom = torch.ops.tracing_compiled.scaled(x, '"\\\x07%s\u00e9', a, 2.0)
        return custom, x.clamp(max=a), x.normal_(a, 1.0), x.normal_(0.0, b), x.fill_(b), x * b, x * (a + 1j)

    return step


def twice(x: torch.Tensor) -> torch.Tensor:
    return x.mul(2)


def several(x: torch.Tensor) -> torch.Tensor:
    return twice(twice(x.add(1)).neg())


PROGRAMS = {
    "sgd": trained(torch.optim.SGD, momentum=0.9),
    "adamw": trained(torch.optim.AdamW, foreach=True),
    "fused": trained(torch.optim.Adam, fused=True),
    "compiled": compiled,
    "changing_numbers": changing_numbers,
} | {
    one.__name__: repeated(one)
    for one in (in_place, views, without_gradients, mixed_precision, transforms, custom, subclasses,
                random_calls, randomness, complex_numbers, changing_sizes, exceptions, threads, modes)
}  # fmt: skip


@pytest.fixture(autouse=True)
def custom_operators() -> Iterator[None]:
    with torch.library._scoped_library("tracing_compiled", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        library.define("clear(Tensor(a!) x) -> ()")
        library.impl("clear", lambda x: x.numpy().fill(0), "CPU")
        library.define("same(Tensor x, int[] sizes, str text, Generator? g=None) -> Tensor")
        library.impl("same", lambda x, sizes, text, g=None: x, "CPU")
        library.define("scaled(Tensor x, str text, float scale=0., float other=2.) -> Tensor")
        library.impl("scaled", lambda x, text, scale=0.0, other=2.0: x * scale, "CPU")
        torch.library.register_autograd(
            "tracing_compiled::twice", lambda context, gradient: gradient * 2, lib=library
        )
        yield


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    extension("operator_observer")


@pytest.mark.parametrize(
    "order", [("python", "compiled"), pytest.param(("compiled", "python"), marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_forms_record_the_same_operators(
    name: str, order: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = PROGRAMS[name]()
    with virtual_gpu() if name == "compiled" else nullcontext():
        python, compiled = in_both_forms(tmp_path, monkeypatch, lambda: [step() for _ in range(TIMES)], order)

    assert [*operators(compiled)] == [*operators(python)] != []
    assert [*compiled.records(LaunchLine)] == [*python.records(LaunchLine)]
    assert [*compiled.records(NotCovered)] == [*python.records(NotCovered)]


@pytest.mark.parametrize("device", ["host", "gpu"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_forms_take_the_same_digests(
    name: str, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = PROGRAMS[name]()
    gpu = host_gpu(monkeypatch) if device == "gpu" else None
    with virtual_gpu() if name == "compiled" else nullcontext():
        python, compiled = in_both_forms(
            tmp_path, monkeypatch, lambda: [step() for _ in range(TIMES)], operators="digests"
        )

    assert [*compiled.records(OperatorDigests)] == [*python.records(OperatorDigests)] != []
    assert [*operators(compiled)] == [*operators(python)] != []
    assert [*compiled.records(NotCovered)] == [*python.records(NotCovered)]
    assert gpu is None or gpu.by_driver > 0


@pytest.mark.parametrize("facts", ["writers", "digests"])
@pytest.mark.parametrize("steps", [StepSelection(last=2), StepSelection(every=2)], ids=["last", "every"])
def test_both_forms_record_the_same_steps(
    steps: StepSelection, facts: OperatorFacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_gpu(monkeypatch)
    x = torch.ones(3)

    def program() -> None:
        for _ in range(24):
            (x + 1).mul_(x)
            tracing.step()

    python, compiled = in_both_forms(tmp_path, monkeypatch, program, steps=steps, operators=facts)

    assert [*operators(compiled)] == [*operators(python)] != []
    assert [*compiled.records(OperatorDigests)] == [*python.records(OperatorDigests)]


def test_an_operator_on_a_thread_without_python_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @torch.jit.script
    def forked(x: torch.Tensor) -> torch.Tensor:
        future = torch.jit._fork(several, x)
        return torch.jit._wait(future)

    def program() -> None:
        for size in (3, 4, 5, 5):  # the layouts of the others are new on the other thread
            twice(torch.empty(3))
            forked(torch.empty(size))

    python, compiled = in_both_forms(tmp_path, monkeypatch, program)
    assert [*operators(compiled)] == [*operators(python)] != []
    threads = [operator.thread for operator in operators(python) if operator.thread != 0]
    assert len(threads) == 4 * 4  # four calls of four operators
    assert len(set(threads)) <= 4


def frames(path: Path, call: Callable[[], object]) -> list[str]:
    """The Python functions that run while a call is recorded, after it was recorded before."""
    names: list[str] = []
    with LaunchRecorder(store.create(path, INFO), "none"):
        for _ in range(TIMES):
            call()
        sys.setprofile(lambda frame, event, argument: names.append(frame.f_code.co_name))
        try:
            call()
        finally:
            sys.setprofile(None)
    return names


def test_an_operator_that_is_known_does_not_reach_the_mode(tmp_path: Path) -> None:
    x = torch.ones(3)

    assert "__torch_dispatch__" not in frames(tmp_path, lambda: [x + 1, x.mul_(2), x.t(), torch.empty(2)])
    assert "__torch_dispatch__" in frames(tmp_path, lambda: x.normal_(generator=torch.Generator()))


def test_numbers_that_change_with_each_step_need_no_new_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = trained(torch.optim.AdamW, foreach=True)()
    runs = in_both_forms(tmp_path, monkeypatch, lambda: [step() for _ in range(10 * TIMES)])

    for run in runs:
        updates = [one for one in operators(run) if one.name == "aten::_foreach_addcdiv_.ScalarList"]
        assert len({one.arguments for one in updates}) == len(updates) == 10 * TIMES
        assert len([one for one in run.records(OperatorSignature) if one.name == updates[0].name]) <= 2


def test_neither_inputs_nor_results_are_kept_alive(tmp_path: Path) -> None:
    alive: list[weakref.ref[torch.Tensor]] = []

    def step() -> None:
        x = torch.ones(3)
        y = x + 1
        alive.extend(map(weakref.ref, (x, y)))

    with LaunchRecorder(store.create(tmp_path, INFO), "none"):
        for _ in range(TIMES):
            step()

        assert [one() for one in alive] == [None] * len(alive)


@pytest.mark.parametrize("strict", [True, False])
def test_an_error_of_the_recorder_ends_the_recording_or_is_raised(tmp_path: Path, strict: bool) -> None:
    x, writer = torch.ones(3), store.create(tmp_path, INFO)
    with LaunchRecorder(writer, "none", strict=strict):
        for _ in range(TIMES):
            x + 1
        hooks._thread.hidden = None  # type: ignore[assignment]  # C++ expects a number
        with pytest.raises(TypeError) if strict else nullcontext():
            x + 1
        del hooks._thread.hidden
        x + 1

    assert len(operators(store.Run(writer.path))) == TIMES + strict  # if it is raised, the recording goes on
