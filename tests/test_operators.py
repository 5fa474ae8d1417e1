"""Operators outside of Triton as writers: what is told, what is not, and that torch.compile goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor

from tracing.record import hooks
from tracing.record.operators import OperatorWrites
from tracing.virtual_gpu import virtual_gpu


class Writes:
    """Everything told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[int]]] = []

    def __call__(self, name: str, tensors: Sequence[Any]) -> None:
        self.told.append((name, [address(tensor) for tensor in tensors]))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.told]

    def writer(self, tensor: Any) -> str | None:
        """Who wrote its storage last."""
        storage = address(tensor)
        found = [name for name, storages in self.told if storage in storages]
        return found[-1] if found else None


def address(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


class Readers:
    """A listener of launches that asks who wrote each argument before the kernel reads it."""

    def __init__(self, writes: Writes) -> None:
        self.writes = writes
        self.found: list[dict[str, str | None]] = []

    def before(self, site: Any, values: Sequence[Any], stream: int, grid: Any) -> None:
        tensors = {n: v for n, v in zip(site.names, values, strict=True) if isinstance(v, torch.Tensor)}
        self.found.append({name: self.writes.writer(t) for name, t in tensors.items()})

    def after(self, token: None) -> None: ...


# ---- what is told ----


def test_a_copy_of_the_host_program_is_told_with_the_tensor_that_it_wrote() -> None:
    writes, x = Writes(), torch.zeros(3)
    with OperatorWrites(writes):
        x.copy_(torch.ones(3))

    assert writes.told[-1] == ("aten::copy_", [address(x)])


def test_an_output_argument_and_a_new_tensor_are_both_written() -> None:
    writes, x, out = Writes(), torch.ones(2, 2), torch.empty(2, 2)
    with OperatorWrites(writes):
        torch.mm(x, x, out=out)
        y = x + 1

    assert writes.writer(out) == "aten::mm.out"
    assert writes.writer(y) == "aten::add.Tensor"


def test_all_tensors_of_a_list_are_written() -> None:
    writes, tensors = Writes(), [torch.zeros(2), torch.zeros(3)]
    with OperatorWrites(writes):
        torch._foreach_add_(tensors, 1.0)

    assert writes.told == [("aten::_foreach_add_.Scalar", [address(tensor) for tensor in tensors])]


def test_an_operator_of_another_library_is_told_by_its_own_name() -> None:
    with torch.library._scoped_library("tracing_test", "FRAGMENT") as library:
        library.define("clear(Tensor(a!) x) -> ()")
        library.impl("clear", lambda x: x.numpy().fill(0), "CPU")
        writes, x = Writes(), torch.zeros(3)
        with OperatorWrites(writes):
            torch.ops.tracing_test.clear(x)

    assert writes.told == [("tracing_test::clear", [address(x)])]


def test_a_collective_writes_its_first_argument_though_its_schema_does_not_say_so() -> None:
    distributed = pytest.importorskip("torch.distributed")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        writes, x = Writes(), torch.ones(3)
        with OperatorWrites(writes):
            distributed.all_reduce(x)
    finally:
        distributed.destroy_process_group()

    assert writes.writer(x) == "c10d::allreduce_"


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_writes_its_running_statistics_in_training_only(training: bool) -> None:
    writes, mean = Writes(), torch.zeros(4)
    with OperatorWrites(writes):
        torch.nn.functional.batch_norm(torch.ones(2, 4), mean, torch.ones(4), training=training)

    assert writes.writer(mean) == ("aten::native_batch_norm" if training else None)


def test_gradients_are_told_with_the_operators_of_the_backward_pass() -> None:
    x = torch.ones(3, 2, requires_grad=True)
    loss = (x @ torch.ones(2, 3)).sum()
    writes = Writes()
    with OperatorWrites(writes):
        loss.backward()

    assert x.grad is not None
    assert writes.writer(x.grad) == "aten::mm"


def test_a_subclass_is_told_as_the_plain_tensors_inside_of_it() -> None:
    a, b = torch.ones(2), torch.ones(2)
    writes = Writes()
    with OperatorWrites(writes):
        TwoTensor(a, b).mul_(2)

    assert writes.told == [("aten::mul_.Tensor", [address(a)]), ("aten::mul_.Tensor", [address(b)])]


def test_an_output_that_the_receiver_keeps_is_told_all_the_same() -> None:
    kept: list[Any] = []
    with OperatorWrites(lambda name, tensors: kept.extend(tensors)):
        x = torch.ones(3)

    assert address(x) in map(address, kept)


# ---- what is not ----


def test_views_and_uninitialised_tensors_are_not_written() -> None:
    x, writes = torch.ones(4, 4), Writes()
    with OperatorWrites(writes):
        x.view(16)[2:].detach()
        x.t().split(2)
        torch.empty(3).new_empty(2).resize_(5)
        torch.empty_like(x).t_()

    assert writes.told == []


def test_in_inference_mode_a_composite_operator_writes_only_what_it_copied() -> None:
    x, writes = torch.ones(4, 2), Writes()
    with OperatorWrites(writes), torch.inference_mode():
        x.reshape(8)
        torch.nn.functional.dropout(x, 0.5, training=False)
        y = x.t().reshape(8)

    assert writes.names == ["aten::reshape"]
    assert writes.writer(y) == "aten::reshape"


def test_tensors_without_memory_are_not_told() -> None:
    writes = Writes()
    with OperatorWrites(writes):
        torch.ones(3, device="meta").add_(1)
        with FakeTensorMode():
            fake = torch.ones(3)
        fake + 1

    assert writes.told == []


def test_what_a_recorder_does_itself_is_not_told() -> None:
    x, writes = torch.ones(3), Writes()
    with OperatorWrites(writes):
        with hooks.hidden():
            x + 1
        with torch._C._DisableTorchDispatch():
            x + 1

    assert writes.told == []


def test_operators_of_the_receiver_itself_are_not_told() -> None:
    names = []

    def wrote(name: str, tensors: Sequence[Any]) -> None:
        names.append(name)
        tensors[0].clone()

    with OperatorWrites(wrote):
        torch.ones(3)

    assert names == ["aten::ones"]


def test_an_operator_that_raises_wrote_nothing_and_the_mode_is_left() -> None:
    writes = Writes()
    with pytest.raises(RuntimeError), OperatorWrites(writes):
        torch.mm(torch.empty(2, 3), torch.empty(2, 3))
    torch.ones(3)

    assert writes.told == []


# ---- with torch.compile ----


def test_who_wrote_what_a_compiled_kernel_reads_is_known_forward_and_backward() -> None:
    x, w = torch.randn(4, 8), torch.randn(8, 8, requires_grad=True)
    writes = Writes()
    readers = Readers(writes)
    with virtual_gpu(), hooks.installed(readers), OperatorWrites(writes):
        y = torch.compile(lambda x, w: torch.sigmoid(x @ w) @ w)(x, w)
        forward = len(readers.found)
        y.backward(torch.ones_like(y))

    assert "aten::mm.out" in readers.found[0].values()
    assert any("aten::mm.out" in found.values() for found in readers.found[forward:])
    assert w.grad is not None


def test_a_fallback_of_inductor_is_known_as_the_writer() -> None:
    x, writes = torch.eye(3), Writes()
    readers = Readers(writes)
    with virtual_gpu(), hooks.installed(readers), OperatorWrites(writes):
        torch.compile(lambda x: torch.cdist(x, x) + 1)(x)

    assert "aten::_cdist_forward" in readers.found[-1].values()


def test_compiling_tells_nothing_but_what_the_program_runs() -> None:
    x, writes = torch.randn(8), Writes()
    with virtual_gpu(), OperatorWrites(writes):
        torch.compile(lambda x: torch.sin(x) + 1)(x)

    assert writes.told == []
