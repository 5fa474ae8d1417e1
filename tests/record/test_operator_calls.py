"""The records of operators outside of Triton: tensors read, written and allocated, and the call site."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO
from torch._inductor.codecache import PyCodeCache
from torch._subclasses.fake_tensor import FakeTensorMode

from tracing import store
from tracing.digest.host import digest
from tracing.environment.compiled_parts import SWITCH
from tracing.launch import hooks
from tracing.model import NotCovered, Operator, OperatorSignature
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu


@triton.jit
def add_one(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1, mask=at < n)


def run_of(runs: Path, call: Callable[[], object], **options: Any) -> store.Run:
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer, **options):
        call()
    return store.Run(writer.path)


def operators(run: store.Run) -> list[Operator]:
    return [operator for process in run.processes(OperatorSignature) for operator in run.operators(process)]


def called(runs: Path, call: Callable[[], object], **options: Any) -> list[Operator]:
    return operators(run_of(runs, call, **options))


# ---- the record of an operator ----


def test_an_operator_is_recorded_with_layouts_storages_and_arguments(tmp_path: Path) -> None:
    x, y = torch.ones(4, 3), torch.ones(3, 4)
    (add,) = called(tmp_path, lambda: x[1:].add_(y.t()[1:], alpha=2))

    assert (add.name, add.arguments, add.allocates) == ("aten::add_.Tensor", "alpha=2", False)
    assert [(one.tensor.shape, one.tensor.stride, one.tensor.offset) for one in add.reads] == [
        ((3, 3), (3, 1), 3),
        ((3, 3), (1, 4), 1),
    ]
    assert [one.tensor for one in add.writes] == [add.reads[0].tensor]
    assert add.writes[0].storage == add.reads[0].storage != add.reads[1].storage


def test_storages_have_their_address_and_size(tmp_path: Path) -> None:
    x = torch.ones(100)
    run = run_of(tmp_path, lambda: x[10:20].zero_())
    (process,) = run.processes(OperatorSignature)
    (zero,) = run.operators(process)
    storage = run.storages(process)[zero.writes[0].storage]

    assert (storage.address, storage.nbytes) == (x.data_ptr(), 400)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.ones(2).normal_(generator=torch.Generator()), "generator=generator of cpu"),
        (lambda: torch.ones(2, 2)[:, torch.tensor([0])], "indices=[None, t]"),
        (lambda: torch.full((2,), True), "size=[2], fill_value=True"),
        (lambda: torch.full((2,), float("nan")), "size=[2], fill_value=nan"),
        (lambda: torch.full((2,), -0.0), "size=[2], fill_value=-0.0"),
    ],
)  # fmt: skip
def test_non_tensor_arguments_have_the_same_text_in_every_run(
    tmp_path: Path, call: Callable[[], object], text: str
) -> None:
    arguments = [called(tmp_path, call)[-1].arguments for _ in range(2)]

    assert arguments[0] == arguments[1]
    assert arguments[0].startswith(text)


def test_equal_arguments_of_different_types_have_different_texts(tmp_path: Path) -> None:
    x = torch.ones(3)
    operators = called(tmp_path, lambda: [x.mul_(value) for value in (1, True, 1.0, -0.0, 0.0)])

    assert [one.arguments for one in operators] == [
        f"other={value}" for value in ("1", "True", "1.0", "-0.0", "0.0")
    ]


def test_an_operator_that_draws_random_numbers_is_marked(tmp_path: Path) -> None:
    x = torch.ones(3)
    operators = called(tmp_path, lambda: [x.bernoulli_(0.5), x.mul_(2)])

    assert [one.random for one in operators] == [True, False]


def test_attention_draws_random_numbers_for_dropout_only(tmp_path: Path) -> None:
    q = torch.rand(1, 1, 4, 4)
    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    dropped = torch.ops.aten.native_dropout
    operators = called(
        tmp_path, lambda: [attention(q, q, q), attention(q, q, q, 0.0, True), dropped(q, 0.5, True)]
    )

    assert [one.random for one in operators] == [False, False, True]


def test_every_tensor_of_a_list_is_recorded_as_read_and_written(tmp_path: Path) -> None:
    x, y = [torch.ones(2), torch.ones(3)], [torch.ones(2), torch.ones(3)]
    (add,) = called(tmp_path, lambda: torch._foreach_add_(x, y))

    assert [one.tensor.shape for one in add.reads] == [(2,), (3,), (2,), (3,)]
    assert [one.storage for one in add.writes] == [one.storage for one in add.reads[:2]]


# ---- allocations ----


def test_fresh_memory_is_allocated_and_not_written(tmp_path: Path) -> None:
    x = torch.ones(3)
    operators = called(tmp_path, lambda: [torch.empty(4), torch.empty_like(x), x.new_empty(2), torch.ones(5)])

    assert [(one.allocates, len(one.reads), one.writes[0].tensor.shape) for one in operators] == [
        (True, 0, (4,)),
        (True, 0, (3,)),
        (True, 0, (2,)),
        (False, 0, (5,)),
    ]


def test_a_storage_that_grows_keeps_what_it_held_and_is_otherwise_fresh(tmp_path: Path) -> None:
    x = torch.ones(3)
    before = x.data_ptr()
    run = run_of(tmp_path, lambda: [x.resize_(100_000), x.resize_(5)])
    (grown,) = operators(run)
    storages = run.storages(run.processes(OperatorSignature)[0])

    assert (grown.name, grown.allocates) == ("aten::resize_", True)
    assert [one.tensor.shape for one in (*grown.reads, *grown.writes)] == [(3,), (100_000,)]
    assert (storages[grown.reads[0].storage].address, storages[grown.reads[0].storage].nbytes) == (before, 12)
    assert storages[grown.writes[0].storage].nbytes == 400_000


def test_allocations_of_generated_code_are_recorded_even_if_it_was_loaded_before(tmp_path: Path) -> None:
    x, w = torch.randn(8, 8), torch.randn(8, 8)
    with virtual_gpu():
        compiled = torch.compile(lambda x, w: torch.sin(x @ w) @ w)
        first = called(tmp_path, lambda: compiled(x, w))
        second = called(tmp_path, lambda: compiled(x, w))

    names = [one.name for one in second]
    assert names == [one.name for one in first]
    assert names.count("inductor::empty_strided_cpu") >= 2
    assert all(one.allocates for one in second if one.name.startswith("inductor::"))


def test_the_allocators_of_generated_code_are_restored_afterwards(tmp_path: Path) -> None:
    allocate = torch._C._dynamo.guards._empty_strided_cpu
    with virtual_gpu():
        compiled = torch.compile(lambda x: torch.cos(x) + 3)
        called(tmp_path, lambda: compiled(torch.ones(8)))

    assert torch._C._dynamo.guards._empty_strided_cpu is allocate
    assert {vars(module).get("empty_strided_cpu", allocate) for module in PyCodeCache.modules} == {allocate}


# ---- order, call site and thread ----


def test_an_operator_is_ordered_between_launches(tmp_path: Path) -> None:
    x, y = torch.ones(64), torch.ones(64)

    def program() -> None:
        x.add_(1)
        add_one[(1,)](x, y, 64, BLOCK=64)
        y.add_(1)

    with virtual_gpu():
        operators = called(tmp_path, program)

    assert [one.launch for one in operators] == [0, 1]


def test_an_operator_has_its_call_site_in_the_users_code(tmp_path: Path) -> None:
    def program() -> None:
        torch.ones(3).add_(1)

    operators = called(tmp_path, program)

    assert {one.site.line for one in operators if one.site} == {program.__code__.co_firstlineno + 1}
    assert {(one.site.file, one.site.function) for one in operators if one.site} == {(__file__, "program")}


def test_operators_of_another_thread_have_that_threads_number(tmp_path: Path) -> None:
    def program() -> None:
        torch.ones(3)
        thread = threading.Thread(target=lambda: torch.ones(4))
        thread.start()
        thread.join()

    assert [one.thread for one in called(tmp_path, program)] == [0, 1]


def test_operators_of_a_thread_started_before_the_recording_are_reported_as_not_covered(
    tmp_path: Path,
) -> None:
    x, y, go, done = torch.ones(64), torch.ones(64), threading.Event(), threading.Event()

    def program() -> None:
        go.wait()
        x.add_(1)
        add_one[(1,)](x, y, 64, BLOCK=64)
        done.set()

    with virtual_gpu():
        threading.Thread(target=program).start()
        run = run_of(tmp_path, lambda: (go.set(), done.wait()))

    assert operators(run) == []
    assert any("running already" in one.what for one in run.records(NotCovered))


@torch.library.custom_op("tracing_test::add_one", mutates_args=())
def added_by_operator(x: torch.Tensor) -> torch.Tensor:
    doubled, y = x * 2, torch.empty_like(x)
    add_one[(1,)](doubled, y, 64, BLOCK=64)
    return y


def test_operators_inside_of_a_custom_operator_are_reported_as_not_covered(tmp_path: Path) -> None:
    with virtual_gpu():
        run = run_of(tmp_path, lambda: added_by_operator(torch.ones(64)))

    assert [one.name for one in operators(run)] == ["aten::ones", "tracing_test::add_one"]
    assert any("inside of a custom operator" in one.what for one in run.records(NotCovered))


def test_operators_of_a_forked_process_are_not_covered_and_disturb_nothing(tmp_path: Path) -> None:
    x = torch.ones(64)

    def program() -> None:
        x.add_(1)
        pid = os.fork()
        if pid == 0:
            for _ in range(300):
                torch.ones(3)
            os._exit(0)
        os.waitpid(pid, 0)
        x.mul_(2)

    run = run_of(tmp_path, program)

    assert [one.name for one in operators(run)] == ["aten::add_.Tensor", "aten::mul_.Tensor"]
    assert any("processes that the program forks" in one.what for one in run.records(NotCovered))


# ---- digests ----


def test_digests_cover_an_operators_inputs_and_outputs(tmp_path: Path) -> None:
    x, y = torch.randn(5), torch.randn(5)
    before, operand = digest(x), digest(y)
    (add,) = called(tmp_path, lambda: x.add_(y), operators="digests")

    assert [one.digest for one in add.reads] == [before, operand]
    assert [one.digest for one in add.writes] == [digest(x)]


def test_digests_are_taken_only_on_request(tmp_path: Path) -> None:
    (add,) = called(tmp_path, lambda: torch.ones(3).add_(1))[1:]

    assert [one.digest for one in (*add.reads, *add.writes)] == [None, None]


def test_a_tensor_with_unreadable_bits_is_reported(tmp_path: Path) -> None:
    x = torch.empty(4, dtype=torch.qint8)
    run = run_of(tmp_path, lambda: x.copy_(x), operators="digests")
    (copy,) = operators(run)

    assert [one.digest for one in (*copy.reads, *copy.writes)] == [None, None]
    assert any("the bits of a tensor of aten::copy_" in one.what for one in run.records(NotCovered))


def test_recording_leaves_a_tensor_as_resizable_as_it_was(tmp_path: Path) -> None:
    x = torch.ones(3)
    called(tmp_path, lambda: x.add_(1), operators="digests")

    assert x.resize_(1000).shape == (1000,)


# ---- operators that are not recorded ----


def test_operators_are_recorded_only_on_request(tmp_path: Path) -> None:
    assert called(tmp_path, lambda: torch.ones(3), operators="none") == []


def test_operators_of_the_recorder_are_not_recorded(tmp_path: Path) -> None:
    def program() -> None:
        with hooks.hidden():
            torch.ones(3)

    assert called(tmp_path, program, operators="digests") == []


def test_tensors_without_memory_are_not_recorded(tmp_path: Path) -> None:
    def program() -> None:
        torch.ones(3, device="meta").add_(1)
        with FakeTensorMode():
            torch.ones(3) + 1

    assert called(tmp_path, program) == []


def test_a_sparse_tensor_is_reported_as_not_covered(tmp_path: Path) -> None:
    x = torch.eye(3).to_sparse()
    run = run_of(tmp_path, lambda: x @ torch.ones(3, 2))
    product = operators(run)[-1]

    assert (product.name, len(product.reads)) == ("aten::mm", 1)
    assert any("tensors that are not strided" in one.what for one in run.records(NotCovered))


@pytest.mark.parametrize("compiled", [True, False])
def test_zeros_that_are_no_memory_are_not_digested(
    compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, str(int(compiled)))
    x, zeros = torch.ones(4), torch._efficientzerotensor((4,))
    seen = called(tmp_path, lambda: (x * zeros, (x + zeros).sin(), x.cos()), operators="digests")

    assert [one.name for one in seen][-2:] == ["aten::sin", "aten::cos"]
    assert {one.digest for operator in seen for one in operator.reads} == {digest(x)}
