"""C++ takes the digests of operators that are known, and leaves the others to Python.

There is no GPU here: `host_gpu` stands in for one, so that C++ launches digest kernels. tests/gpu has the
same with real ones. test_compiled_operators.py compares the two forms on more programs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from generated.operator_programs import program as random_program
from handmade.records import INFO
from recorded.both_forms import in_both_forms, operators
from recorded.host_gpu import SIDE_STREAM, SLOTS, STREAM, HostGpu, host_gpu
from recorded.method_calls import calls_of
from recorded.threads import in_threads
from recorded.training_step import training_step

from tracing import store
from tracing.launch import hooks
from tracing.model import NotCovered, OperatorDigests, StepSelection
from tracing.native.extension import extension
from tracing.operators.dispatch import Operators
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.operator_digests import OperatorDigestQueue
from tracing.record.outputs import Keep

STEPS = 30


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    extension("operator_observer")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> HostGpu:
    return host_gpu(monkeypatch)


def digests(run: store.Run) -> list[OperatorDigests]:
    return list(run.records(OperatorDigests))


def same_runs(
    path: Path, monkeypatch: pytest.MonkeyPatch, program: Callable[[], object], **options: Any
) -> int:
    """How many operators have digests, which both forms have taken."""
    python, compiled = in_both_forms(path, monkeypatch, program, operators="digests", **options)
    assert digests(compiled) == digests(python)
    assert operators(compiled) == operators(python)
    assert [*compiled.records(NotCovered)] == [*python.records(NotCovered)]
    return len(digests(python))


def test_a_training_step_rarely_reaches_python(
    gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = training_step()
    dispatched = calls_of(monkeypatch, Operators, "__torch_dispatch__")
    taken = calls_of(monkeypatch, OperatorDigestQueue, "take")
    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="digests") as recorder:
        for _ in range(STEPS):
            step()
    recorded = digests(store.Run(recorder.writer.path))

    assert [one.operator for one in recorded] == sorted(one.operator for one in recorded)
    assert len(recorded) > 40 * STEPS
    assert len(dispatched) < len(recorded) / 10
    assert len(taken) < len(recorded) / 5
    assert gpu.by_driver > len(recorded)


@pytest.mark.parametrize("seed", range(132, 136))
def test_both_forms_take_the_same_digests_of_a_random_program(
    seed: int, gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert same_runs(tmp_path, monkeypatch, lambda: [random_program(seed) for _ in range(3)]) > 0
    assert gpu.by_driver > 0


def test_tensors_at_new_addresses_are_known(
    gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = calls_of(monkeypatch, OperatorDigestQueue, "take")
    kept = [torch.rand(8) for _ in range(STEPS)]
    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="digests") as recorder:
        sums = [x + 1 for x in kept]

    assert len(digests(store.Run(recorder.writer.path))) == len(sums)
    assert len(taken) <= 4  # the first call reaches Python with both sides, the second with each


def test_what_arrives_late_is_recorded_in_the_order_of_the_operators(
    gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.rand(8)

    def program() -> None:
        for step in range(100):
            gpu.arrives = step % 50 == 0
            x.add_(1).mul_(0.5)
        gpu.arrives = True

    assert same_runs(tmp_path, monkeypatch, program) == 200


def test_a_batch_is_written_with_one_call(
    gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, written = torch.rand(8), list[int]()
    original = store.RunWriter.extend

    def counted(writer: store.RunWriter, records: Sequence[Any]) -> None:
        written.extend([len(records)] if records and isinstance(records[0], OperatorDigests) else [])
        original(writer, records)

    monkeypatch.setattr(store.RunWriter, "extend", counted)
    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="digests"):
        for _ in range(320):
            x.add_(1)

    assert written == [32] * 10  # two tensors each in batches of 64


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.untyped_storage().resize_(0),
        lambda x: x.untyped_storage().resize_(1024),
        lambda x: x.set_(x.untyped_storage(), 1, (7,)),
        lambda x: x.as_strided_((2, 2, 2), (1, 2, 4)),
        lambda x: x.t_() if x.dim() == 2 else x.unsqueeze_(0),
        lambda x: x.resize_(3),
    ],
    ids=["freed", "grown", "misaligned", "strides", "dimensions", "size"],
)
def test_a_known_operator_meets_another_tensor(
    change: Callable[[torch.Tensor], object], gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.arange(8.0)

    def program() -> None:
        for _ in range(3):
            torch.neg(x)
        with hooks.hidden():
            change(x)
        if x.untyped_storage().nbytes():
            for _ in range(3):
                torch.neg(x)
        else:
            torch.ops.tracing_digests.count(x)

    with torch.library._scoped_library("tracing_digests", "FRAGMENT") as library:
        library.define("count(Tensor x) -> Tensor")
        library.impl("count", lambda x: torch.ones(1), "CPU")
        assert same_runs(tmp_path, monkeypatch, program) >= 4


def test_a_side_stream_has_its_own_batches(
    gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, streams = torch.rand(8), [STREAM]
    monkeypatch.setattr(OperatorDigestQueue, "current_stream", staticmethod(lambda index: streams[-1]))

    def program() -> None:
        for step in range(200):
            streams.append(STREAM if step % 3 else SIDE_STREAM)
            x.add_(1)

    assert same_runs(tmp_path, monkeypatch, program) == 200


@pytest.mark.parametrize(
    ("name", "answer"), [("capturing", True), ("current_device", 1)], ids=["captures", "device"]
)
def test_python_takes_the_digests_of_a_capture_and_of_another_gpu(
    name: str, answer: object, gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, answers = torch.rand(8), [getattr(OperatorDigestQueue, name)()]
    monkeypatch.setattr(OperatorDigestQueue, name, staticmethod(lambda: answers[-1]))

    def program() -> None:
        for step in range(9):
            answers.append(answer if step in (4, 5, 6) else answers[0])
            x.add_(1)

    assert same_runs(tmp_path, monkeypatch, program) == 9
    assert gpu.by_driver == 2 * (9 - 3 - 1) - 1  # the second call reaches Python once more


@pytest.mark.parametrize(
    "options", [{"steps": StepSelection(until="nan")}, {"keep": Keep(inputs=True)}], ids=["until", "inputs"]
)
def test_python_records_if_digests_are_watched_or_inputs_are_kept(
    options: dict[str, Any], gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.rand(8)

    assert same_runs(tmp_path, monkeypatch, lambda: [x.add_(1) for _ in range(9)], **options) == 9
    assert gpu.by_driver == 0 < gpu.by_python


def test_python_launches_the_first_digests_of_a_thread(
    gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, captures, by_python = torch.rand(8), [False], list[int]()
    monkeypatch.setattr(OperatorDigestQueue, "capturing", staticmethod(lambda: captures[-1]))

    def work() -> None:
        for captured in (True, False, False):
            captures.append(captured)
            x.add_(1)
            by_python.append(gpu.by_python)

    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="digests"):
        for _ in range(3):
            x.add_(1)
        by_python.append(gpu.by_python)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert [b - a for a, b in pairwise(by_python)] == [0, 1, 0]


def test_operators_of_several_threads_are_recorded_once(gpu: HostGpu, tmp_path: Path) -> None:
    def work() -> None:
        x = torch.rand(8)
        for _ in range(200):
            x = x * 2 + 1

    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="digests") as recorder:
        in_threads(work)
    run = store.Run(recorder.writer.path)

    by_thread: dict[int, list[str]] = {}
    for call, taken in zip(operators(run), digests(run), strict=True):
        if call.name != "aten::rand":
            by_thread.setdefault(call.thread, []).extend([taken.before[0].bits, taken.after[0].bits])
    assert [len(bits) for bits in by_thread.values()] == [2 * 2 * 200] * 4
    for bits in by_thread.values():
        assert bits[1:-1:2] == bits[2::2]  # each operator reads what the one before it wrote


@pytest.mark.parametrize("strict", [True, False])
def test_an_error_of_the_driver_ends_the_recording_or_is_raised(
    strict: bool, gpu: HostGpu, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    x = torch.ones(3)
    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="digests", strict=strict) as recorder:
        for _ in range(5):
            x.add_(1)
        gpu.fail(719)
        with pytest.raises(RuntimeError, match="CUDA error 719") if strict else nullcontext():
            x.add_(1)
        gpu.fail(0)
        x.add_(1)

    assert x[0] == 8 - strict  # Python's form raises before the operator runs, too
    assert len(operators(store.Run(recorder.writer.path))) == (6 if strict else 5)
    assert strict or "cuLaunchKernel: CUDA error 719" in capfd.readouterr().err


def test_an_operator_that_raises_leaves_no_digests(
    gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = torch.ones(3, 3), torch.ones(4, 4)

    def program() -> None:
        for other in (x, x, x, y, x):
            with pytest.raises(RuntimeError) if other is y else nullcontext():
                torch.mm(x, other)

    assert same_runs(tmp_path, monkeypatch, program) == 4


def test_an_operator_may_read_more_tensors_than_a_batch_has_slots(
    gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = [torch.rand(n % 5) for n in range(SLOTS * 5 // 2)]

    def program() -> None:
        for _ in range(4):
            torch._foreach_add_(tensors, 1.0)
            torch._foreach_mul_(tensors[:SLOTS], 0.5)

    assert same_runs(tmp_path, monkeypatch, program) == 8


def test_digests_that_were_taken_in_inference_mode_arrive_outside_of_it(
    gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.rand(8)

    def program() -> None:
        for mode in (True, False, True, False):
            with torch.inference_mode(mode):
                for _ in range(SLOTS):
                    torch.neg(x)

    assert same_runs(tmp_path, monkeypatch, program) == 4 * SLOTS


def test_layouts_that_change_in_each_step_are_forgotten(gpu: HostGpu, tmp_path: Path) -> None:
    storage, count = torch.zeros(5000), 4200  # more than are remembered
    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="digests") as recorder:
        for size in range(count):
            torch.neg(storage[:size])
        before = gpu.by_python
        for size in range(count - 10, count):  # known
            torch.neg(storage[:size])
        assert gpu.by_python == before
        for size in range(10, 20):  # forgotten
            torch.neg(storage[:size])
        assert gpu.by_python > before

    assert len(digests(store.Run(recorder.writer.path))) == count + 20
