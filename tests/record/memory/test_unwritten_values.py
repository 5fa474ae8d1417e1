"""Values that depend on memory which nothing wrote are evidence when they reach the host, and only then."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO

from tracing import store
from tracing.model import UNDECIDED, Access, MemoryEvidence, NotCovered
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@triton.jit
def fill(y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, at.to(tl.float32), at < n)


@triton.jit
def twice(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, at < n), at < n)


def filled(n: int, size: int) -> torch.Tensor:
    """`size` elements, of which a kernel has written the first `n`."""
    y = torch.empty(size)
    fill[(triton.cdiv(size, 64),)](y, n, BLOCK=64)
    return y


def recorded(runs: Path, program: Callable[[], object]) -> store.Run:
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer):
        program()
    return store.Run(writer.path)


def evidence(runs: Path, program: Callable[[], object]) -> list[MemoryEvidence]:
    return list(recorded(runs, program).records(MemoryEvidence))


def undecided(runs: Path, program: Callable[[], object]) -> bool:
    covered = recorded(runs, program).records(NotCovered)
    return any(one.what.startswith(UNDECIDED) for one in covered)


# ---- wrong programs


def test_a_sum_of_an_element_that_a_kernel_left_out_names_kernel_operator_and_line(
    gpu: None, tmp_path: Path
) -> None:
    (one,) = evidence(tmp_path, lambda: filled(99, 100).sum().item())

    assert (one.launch, one.kind, one.arguments) == (0, "unwritten", ("y",))
    assert one.where.startswith("test_unwritten_values.py:")
    assert one.what.startswith("leaves 1 element of y unwritten, [99]; aten::sum reads 1 element that")
    assert one.what.endswith("and aten::_local_scalar_dense passes what depends on it to the host")


def test_an_element_that_reaches_the_host_itself_is_named_once(gpu: None, tmp_path: Path) -> None:
    (one,) = evidence(tmp_path, lambda: [filled(60, 100)[70].item() for _ in range(1)])

    left = "leaves 40 elements of y unwritten, first [60]"
    passes = "aten::_local_scalar_dense passes 1 element that nothing wrote to the host"
    assert one.what == f"{left}; {passes}"


def test_memory_that_no_launch_wrote_belongs_to_no_launch(gpu: None, tmp_path: Path) -> None:
    (one,) = evidence(tmp_path, lambda: torch.empty(3).max().item())

    assert (one.launch, one.arguments) == (-1, ())


WRONG: dict[str, Callable[[torch.Tensor], object]] = {
    "list": lambda y: y.tolist(),
    "branch": lambda y: bool((y > 1e6).any()),
    "equality": lambda y: torch.equal(y[99:], torch.zeros(1)),
    "copies": lambda y: torch.cat([y.clone().view(10, 10).t().contiguous().flatten()])[-1].item(),
    "host copy": lambda y: y.cpu().sum().item(),
    "cast": lambda y: y.to(torch.float64).mean().item(),
    "product": lambda y: (y.view(10, 10) @ torch.ones(10, 10)).sum().item(),
    "in place": lambda y: y.mul_(2).add_(1).norm().item(),
    "chosen": lambda y: torch.empty_like(y).copy_(y).index_select(0, torch.tensor([99])).item(),
    "shape": lambda y: y.nonzero(),
    "order": lambda y: y.argsort()[0].item(),
    "gradient": lambda y: _gradient(y).sum().item(),
    "padded twice": lambda y: torch.nn.functional.pad(y, (2, 2))[101].item(),
    "integers": lambda y: int((torch.empty(4, dtype=torch.int32) > 1000).sum()),
    "printed": lambda y: repr(y),
    "sum printed": lambda y: str(y.sum()),
    "gradient printed": lambda y: repr(_gradient(y).sum()),
}  # fmt: skip


def _gradient(y: torch.Tensor) -> torch.Tensor:
    w = torch.ones(100, requires_grad=True)
    (w * y).sum().backward()
    assert w.grad is not None
    return w.grad


@pytest.mark.parametrize("name", WRONG)
def test_a_host_that_depends_on_what_nothing_wrote_is_evidence(gpu: None, tmp_path: Path, name: str) -> None:
    records = evidence(tmp_path, lambda: WRONG[name](filled(99, 100)))

    assert {one.kind for one in records} == {"unwritten"}


COPIES: dict[str, Callable[[], torch.Tensor]] = {
    "to the device": lambda: torch.empty(100).cuda(),
    "clone": lambda: torch.empty(4, 25).clone().view(100),
    "cast": lambda: torch.empty(100, dtype=torch.float64).to(torch.float32),
    "contiguous": lambda: torch.empty(10, 10).t().contiguous().view(100),
    "into zeros": lambda: torch.zeros(100).copy_(torch.empty(1)),
    "copy of a copy": lambda: copy.deepcopy(torch.empty(100).cuda()),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_a_kernel_that_leaves_elements_of_a_copy_unwritten_is_named(
    gpu: None, tmp_path: Path, name: str
) -> None:
    def program() -> None:
        y = COPIES[name]()
        fill[(2,)](y, 70, BLOCK=64)
        y.sum().item()

    (one,) = evidence(tmp_path, program)

    assert (one.launch, one.arguments) == (0, ("y",))
    assert one.what.startswith("leaves 30 elements of y unwritten, first [70]; aten::sum reads 30 elements")


def test_a_copy_of_what_a_kernel_left_out_names_this_kernel(gpu: None, tmp_path: Path) -> None:
    (one,) = evidence(tmp_path, lambda: filled(60, 100).view(10, 10).t().clone().sum().item())

    assert one.what.startswith("leaves 40 elements of y unwritten, first [60]; aten::sum reads 40 elements")


def test_a_kernel_that_reads_a_copy_of_unwritten_elements_reads_unwritten_ones(
    gpu: None, tmp_path: Path
) -> None:
    def program() -> None:
        twice[(2,)](filled(90, 100).cuda(), torch.zeros(100), 100, BLOCK=64)

    _, access = recorded(tmp_path, program).records(Access)

    assert access.uninitialised == {0: (90, 10)}


# ---- correct programs


def _scattered() -> float:
    w, order = torch.empty(70), torch.randperm(70)
    for start in range(0, 70, 7):
        w.index_put_((order[start : start + 7],), torch.ones(7))
    return w.sum().item()


def _joined() -> float:
    out = torch.empty(3, 40)
    for row in range(3):
        out[row, :30] = row
        out[row].narrow(0, 30, 10).fill_(1)
    return out.sum().item()


def _trained() -> list[float]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Embedding(20, 16),
        torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
        torch.nn.Linear(16, 20),
    )
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for _ in range(2):
        tokens = torch.randint(20, (2, 8))
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def _resized() -> float:
    y = torch.empty(0).resize_(10)
    return y.fill_(1).sum().item()


def _through_numpy() -> float:
    y = torch.empty(10)
    y.numpy()[:] = 0
    return y.sum().item()


def _padded(y: torch.Tensor) -> float:
    z = torch.cat([(y * 2 + 1).clone(), y.view(10, 10).t().flatten()])
    return z[:99].sum().item()


RIGHT: dict[str, Callable[[], object]] = {
    "padding that is computed and dropped": lambda: _padded(filled(99, 100)),
    "masked": lambda: torch.where(torch.arange(100) < 99, filled(99, 100), torch.zeros(100)).sum().item(),
    "masked_fill": lambda: filled(99, 100).masked_fill(torch.arange(100) >= 99, 0).sum().item(),
    "written later": lambda: [(y := filled(99, 100)), y[99:].zero_(), y.sum().item()],
    "written by two kernels": lambda: [(y := filled(50, 100)), fill[(2,)](y, 100, BLOCK=64), y.tolist()],
    "copied and overwritten": lambda: filled(99, 100).clone().fill_(1).sum().item(),
    "a copy that two kernels write": lambda: [
        (y := filled(50, 100).cuda()), fill[(2,)](y, 100, BLOCK=64), y.tolist()
    ],
    "a copy that numpy writes": lambda: [(y := torch.empty(9).cuda()), y.numpy().fill(1), y.sum().item()],
    "a copy of which the rest is dropped": lambda: filled(60, 100).to(torch.float64)[:60].sum().item(),
    "an ignored result": lambda: filled(99, 100).sum(),
    "a slice": lambda: filled(99, 100)[:99].sum().item(),
    "strides": lambda: torch.empty_strided((4, 3), (8, 1)).fill_(1).sum().item(),
    "scattered": _scattered,
    "scatter": lambda: torch.empty(3, 4).scatter_(1, torch.arange(4).repeat(3, 1), 2.0).sum().item(),
    "index_copy": lambda: torch.empty(5).index_copy_(0, torch.arange(5), torch.ones(5)).sum().item(),
    "out": lambda: torch.mm(torch.ones(3, 3), torch.ones(3, 3), out=torch.empty(3, 3)).sum().item(),
    "addmm of a beta of zero": lambda: torch.addmm(
        torch.empty(3, 3), torch.ones(3, 3), torch.ones(3, 3), beta=0
    ).sum().item(),
    "baddbmm of a beta of zero": lambda: torch.empty(1, 3, 3).baddbmm_(
        torch.ones(1, 3, 3), torch.ones(1, 3, 3), beta=0
    ).sum().item(),
    "joined": _joined,
    "initialised": lambda: torch.nn.init.trunc_normal_(torch.empty(50)).sum().item(),
    "random": lambda: torch.empty(50).uniform_().mean().item(),
    "dropout": lambda: torch.nn.functional.dropout(torch.ones(50)).mean().item(),
    "never equal": lambda: torch.equal(filled(99, 100), torch.zeros(100)),
    "layout only": lambda: torch.zeros_like(filled(1, 100)).tolist(),
    "resized": _resized,
    "numpy": _through_numpy,
    "trained": _trained,
    "copied model": lambda: copy.deepcopy(torch.nn.Linear(3, 3)).weight.sum().item(),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_correct_program_has_no_evidence(gpu: None, tmp_path: Path, name: str) -> None:
    run = recorded(tmp_path, RIGHT[name])

    assert list(run.records(MemoryEvidence)) == []
    assert [one.what for one in run.records(NotCovered) if one.what.startswith(UNDECIDED)] == []


def test_following_values_draws_no_random_numbers(gpu: None, tmp_path: Path) -> None:
    def program() -> float:
        torch.manual_seed(3)
        torch.nn.functional.dropout(filled(99, 100))
        return torch.rand(1).item()

    drawn: list[float] = []
    recorded(tmp_path, lambda: drawn.append(program()))

    assert drawn == [program()]


# ---- what cannot be decided


def test_memory_that_numpy_receives_is_not_followed(gpu: None, tmp_path: Path) -> None:
    assert undecided(tmp_path, lambda: filled(99, 100).numpy())


def test_an_operator_of_another_library_is_not_followed(gpu: None, tmp_path: Path) -> None:
    @torch.library.custom_op("unwritten::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    assert undecided(tmp_path, lambda: twice(filled(99, 100)))


# ---- accesses


def test_an_access_counts_the_elements_that_nothing_has_written_when_the_launch_ends(
    gpu: None, tmp_path: Path
) -> None:
    (access,) = recorded(tmp_path, lambda: filled(60, 100)).records(Access)

    assert access.unwritten == {0: (60, 40)}
