"""Kept tensors hold the bits they had when kept, and keeping them stays within the budgets."""

from __future__ import annotations

import resource
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from handmade.records import INFO
from torch.overrides import TorchFunctionMode

from tracing import store
from tracing.model import KeptTensor
from tracing.record.outputs import OutputKeeper, load

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*support is experimental", "ignore:torch.quantize_per_tensor"
)

DTYPES = sorted(
    {
        dtype
        for dtype in vars(torch).values()
        if isinstance(dtype, torch.dtype) and "q" not in str(dtype)  # quantized ones have no bytes to view
    },
    key=str,
)

Said = list[tuple[str, str]]
Make = Callable[..., OutputKeeper]


@pytest.fixture
def writer(tmp_path: Path) -> store.RunWriter:
    return store.create(tmp_path, INFO)


@pytest.fixture
def said() -> Said:
    return []


@pytest.fixture
def keeper(writer: store.RunWriter, said: Said) -> Make:
    return lambda **budget: OutputKeeper(writer, lambda *record: said.append(record), **budget)


def lines(writer: store.RunWriter) -> list[KeptTensor]:
    return list(store.Run(writer.path).records(KeptTensor))


def kept(writer: store.RunWriter) -> list[torch.Tensor]:
    return [load(store.Run(writer.path).bytes(line.blob)) for line in lines(writer)]


def filled(count: int, value: float = 1.0) -> torch.Tensor:
    return torch.full((count,), value, dtype=torch.float64)  # 8 bytes per element


def content(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.reshape(-1).view(torch.uint8).tolist())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_tensor_of_any_dtype_is_read_back_with_its_bits(
    dtype: torch.dtype, writer: store.RunWriter, keeper: Make
) -> None:
    tensor = (torch.arange(96, dtype=torch.uint8) % 2).view(3, 32).view(dtype)
    keeping = keeper()
    keeping.keep(0, 1, "after", tensor)
    keeping.close()

    (restored,) = kept(writer)
    assert (restored.dtype, restored.shape) == (dtype, tensor.shape)
    assert content(restored) == content(tensor)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(2.5),
        torch.empty(0, 3),
        torch.tensor(2.5, dtype=torch.complex128),
        torch.empty(0, 3, dtype=torch.complex128),
        torch.arange(12.0).view(3, 4).t()[1:],
        torch.arange(12.0)[::2].expand(2, 6),
        torch.tensor([1 + 2j]).conj(),
        torch.tensor([1 + 2j]).conj().imag,
        torch.ones(2, requires_grad=True),
    ],
    ids=["0-d", "empty", "0-d bytes", "empty bytes", "transposed", "expanded", "conj", "neg", "grad"],
)
def test_a_tensor_of_any_layout_is_read_back(
    tensor: torch.Tensor, writer: store.RunWriter, keeper: Make
) -> None:
    keeping = keeper()
    keeping.keep(0, 0, "before", tensor)
    keeping.close()

    (restored,) = kept(writer)
    assert (restored.dtype, restored.shape) == (tensor.dtype, tensor.shape)
    assert restored.tolist() == tensor.tolist()


def test_a_quantized_tensor_is_kept_as_its_integers(writer: store.RunWriter, keeper: Make) -> None:
    tensor = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 3, torch.quint8)
    keeping = keeper()
    keeping.keep(0, 0, "before", tensor)
    keeping.close()

    (restored,) = kept(writer)
    assert (restored.dtype, restored.tolist()) == (torch.uint8, [5, 7])


def test_a_record_names_launch_argument_and_side_of_its_content(
    writer: store.RunWriter, keeper: Make
) -> None:
    keeping = keeper()
    keeping.keep(7, 2, "before", filled(1))
    keeping.close()

    (line,) = lines(writer)
    assert (line.launch, line.position, line.side) == (7, 2, "before")


def test_a_later_change_of_the_tensor_changes_nothing(writer: store.RunWriter, keeper: Make) -> None:
    tensor = filled(2)
    keeping = keeper()
    keeping.keep(0, 0, "before", tensor)
    tensor.zero_()
    keeping.close()

    assert kept(writer)[0].tolist() == [1.0, 1.0]


def test_tensors_within_the_memory_budget_are_not_written_yet(writer: store.RunWriter, keeper: Make) -> None:
    keeping = keeper(memory=80)
    for launch in range(10):
        keeping.keep(launch, 0, "after", filled(1))

    assert (keeping.held, lines(writer)) == (80, [])


def test_close_writes_the_remaining_tensors(writer: store.RunWriter, keeper: Make) -> None:
    keeping = keeper()
    for launch in range(3):
        keeping.keep(launch, 0, "after", filled(launch, launch))
    keeping.close()

    assert [len(tensor) for tensor in kept(writer)] == [0, 1, 2]
    assert keeping.held == 0


@pytest.mark.parametrize(
    ("spill", "written"), [("oldest", [0, 1]), ("largest", [1, 0])], ids=["oldest", "largest"]
)
def test_clones_are_written_in_order_until_half_the_budget_is_free(
    spill: str, written: list[int], writer: store.RunWriter, keeper: Make
) -> None:
    keeping = keeper(memory=96, spill=spill)
    for launch, count in enumerate([2, 5, 1, 2, 2, 1]):
        keeping.keep(launch, 0, "after", filled(count))

    assert [line.launch for line in lines(writer)] == written
    assert keeping.held <= 48


def test_memory_stays_within_its_budget(keeper: Make) -> None:
    keeping = keeper(memory=100)
    held = []
    for launch in range(50):
        keeping.keep(launch, 0, "after", filled(launch % 12))
        held.append(keeping.held)

    assert max(held) <= 100


def test_a_tensor_larger_than_the_budget_is_written_at_once(writer: store.RunWriter, keeper: Make) -> None:
    keeping = keeper(memory=80)
    keeping.keep(0, 0, "after", filled(2))
    keeping.keep(1, 0, "after", filled(20))

    assert [line.launch for line in lines(writer)] == [1]
    assert keeping.held == 16


def test_equal_contents_are_stored_and_counted_once(writer: store.RunWriter, keeper: Make) -> None:
    keeping = keeper(disk=1000)
    for launch in range(20):
        keeping.keep(launch, 0, "after", filled(10))
    keeping.close()

    assert len(lines(writer)) == 20
    assert len({line.blob for line in lines(writer)}) == 1


def test_an_exhausted_disk_budget_is_reported_once_and_the_program_continues(
    writer: store.RunWriter, keeper: Make, said: Said
) -> None:
    keeping = keeper(memory=0, disk=1000)
    for launch in range(20):
        keeping.keep(launch, 0, "after", filled(50, launch))
    keeping.close()

    assert [line.launch for line in lines(writer)] == [0, 1]
    what = "the content of tensors beyond 1000 bytes on disk, from launch 2, argument 0, after on"
    assert said == [(what, "--keep-disk BYTES")]
    assert keeping.held == 0


def test_a_disk_that_takes_no_more_is_reported_once_and_the_program_continues(
    writer: store.RunWriter, keeper: Make, said: Said
) -> None:
    keeping = keeper(memory=0)
    allowed, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        for launch in range(3):
            keeping.keep(launch, 0, "after", filled(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (allowed, most))

    what = "the content of tensors from launch 0, argument 0, after on: File too large"
    assert said == [(what, "--runs DIR")]
    assert lines(writer) == []


def test_a_tensor_that_does_not_fit_into_memory_is_reported_and_others_are_written(
    writer: store.RunWriter, keeper: Make, said: Said
) -> None:
    keeping = keeper(memory=1 << 62)
    keeping.keep(0, 0, "after", filled(1))
    keeping.keep(1, 0, "after", filled(1).expand(1 << 50))
    keeping.keep(2, 0, "after", filled(1))
    keeping.close()

    assert [line.launch for line in lines(writer)] == [0, 2]
    ((what, setting),) = said
    assert (what.startswith("the content of tensors of launch 1 "), setting) == (True, "--keep-memory")


class FullDevice(TorchFunctionMode):
    """Makes the next clones fail like clones on a full GPU."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.Tensor.clone and self.failures:
            self.failures -= 1
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 8 bytes")
        return function(*args, **(kwargs or {}))


def test_held_clones_are_written_if_the_device_is_full(
    writer: store.RunWriter, keeper: Make, said: Said
) -> None:
    keeping = keeper()
    keeping.keep(0, 0, "after", filled(3))
    with FullDevice(failures=1):
        keeping.keep(1, 0, "after", filled(1))

    assert [line.launch for line in lines(writer)] == [0]
    assert (keeping.held, said) == (8, [])


def test_a_tensor_that_does_not_fit_after_freeing_clones_is_reported(keeper: Make, said: Said) -> None:
    keeping = keeper()
    with FullDevice(failures=2):
        keeping.keep(1, 0, "after", filled(1))

    reason = "CUDA out of memory. Tried to allocate 8 bytes"
    assert said == [(f"the content of tensors of launch 1 ({reason})", "--keep-memory")]


def test_threads_may_keep_at_once(writer: store.RunWriter, keeper: Make) -> None:
    keeping = keeper(memory=800)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda launch: keeping.keep(launch, 0, "after", filled(7, launch)), range(200)))
    keeping.close()

    assert {line.launch: int(t[0]) for line, t in zip(lines(writer), kept(writer), strict=True)} == {
        launch: launch for launch in range(200)
    }
