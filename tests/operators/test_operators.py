"""Operators outside of Triton: which are intercepted, and what they read and write, compiled or not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor

from tracing.launch import hooks
from tracing.operators.dispatch import Operators
from tracing.operators.effects import Effect
from tracing.virtual_gpu import virtual_gpu


class Calls:
    """A listener that keeps every operator, in order, with the storages that it read and wrote."""

    def __init__(self) -> None:
        self.read: list[tuple[str, list[int]]] = []
        self.wrote: list[tuple[str, list[int]]] = []

    def passes_over(self) -> bool:
        return False

    def looks_before(self, effect: Effect) -> bool:
        return True

    def before(self, effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[int]:
        return [address(tensor) for tensor in effect.read(args, kwargs)]

    def after(
        self, effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, before: list[int]
    ) -> None:
        if written := effect.written(args, kwargs, result):
            self.read.append((effect.name, before))
            if not (effect.allocates or effect.resizes):
                self.wrote.append((effect.name, [address(tensor) for tensor in written]))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.wrote]

    def writer(self, tensor: Any) -> str | None:
        """The operator that wrote the tensor's storage last."""
        storage = address(tensor)
        writers = [name for name, storages in self.wrote if storage in storages]
        return writers[-1] if writers else None


def address(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


class Readers:
    """A launch listener that looks up the writer of each argument before the kernel reads it."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.found: list[dict[str, str | None]] = []

    def before(self, site: Any, values: Sequence[Any], stream: int, grid: Any) -> None:
        tensors = {n: v for n, v in zip(site.names, values, strict=True) if isinstance(v, torch.Tensor)}
        self.found.append({name: self.calls.writer(t) for name, t in tensors.items()})

    def after(self, token: None) -> None: ...


# ---- writes ----


def test_a_copy_of_the_host_program_is_passed_on_with_the_tensor_that_it_wrote() -> None:
    calls, x = Calls(), torch.zeros(3)
    with Operators(calls):
        x.copy_(torch.ones(3))

    assert calls.wrote[-1] == ("aten::copy_", [address(x)])


def test_an_output_argument_and_a_new_tensor_are_both_written() -> None:
    calls, x, out = Calls(), torch.ones(2, 2), torch.empty(2, 2)
    with Operators(calls):
        torch.mm(x, x, out=out)
        y = x + 1

    assert calls.writer(out) == "aten::mm.out"
    assert calls.writer(y) == "aten::add.Tensor"


def test_all_tensors_of_a_list_are_written() -> None:
    calls, tensors = Calls(), [torch.zeros(2), torch.zeros(3)]
    with Operators(calls):
        torch._foreach_add_(tensors, 1.0)

    assert calls.wrote == [("aten::_foreach_add_.Scalar", [address(tensor) for tensor in tensors])]


def test_an_operator_of_another_library_has_its_own_name() -> None:
    with torch.library._scoped_library("tracing_test", "FRAGMENT") as library:
        library.define("clear(Tensor(a!) x) -> ()")
        library.impl("clear", lambda x: x.numpy().fill(0), "CPU")
        calls, x = Calls(), torch.zeros(3)
        with Operators(calls):
            torch.ops.tracing_test.clear(x)

    assert calls.wrote == [("tracing_test::clear", [address(x)])]


def test_a_collective_writes_its_first_argument_though_its_schema_does_not_say_so() -> None:
    distributed = pytest.importorskip("torch.distributed")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        calls, x = Calls(), torch.ones(3)
        with Operators(calls):
            distributed.all_reduce(x)
    finally:
        distributed.destroy_process_group()

    assert calls.writer(x) == "c10d::allreduce_"


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_writes_its_running_statistics_in_training_only(training: bool) -> None:
    calls, mean = Calls(), torch.zeros(4)
    with Operators(calls):
        torch.nn.functional.batch_norm(torch.ones(2, 4), mean, torch.ones(4), training=training)

    assert calls.writer(mean) == ("aten::native_batch_norm" if training else None)


def test_gradients_are_written_by_operators_of_the_backward_pass() -> None:
    x = torch.ones(3, 2, requires_grad=True)
    loss = (x @ torch.ones(2, 3)).sum()
    calls = Calls()
    with Operators(calls):
        loss.backward()

    assert x.grad is not None
    assert calls.writer(x.grad) == "aten::mm"


def test_a_subclass_is_passed_on_as_the_plain_tensors_inside_of_it() -> None:
    a, b = torch.ones(2), torch.ones(2)
    calls = Calls()
    with Operators(calls):
        TwoTensor(a, b).mul_(2)

    assert calls.wrote == [("aten::mul_.Tensor", [address(a)]), ("aten::mul_.Tensor", [address(b)])]


# ---- reads ----


def reads(call: Callable[[], object]) -> list[tuple[str, list[int]]]:
    """The tensors that each operator of a call read."""
    calls = Calls()
    with Operators(calls):
        call()
    return calls.read


def test_an_operator_reads_its_tensor_arguments_including_lists_and_keywords() -> None:
    x, y, index = torch.ones(3), torch.ones(3), torch.tensor([0, 1])

    assert reads(lambda: torch.cat([x, y])) == [("aten::cat", [address(x), address(y)])]
    assert reads(lambda: x[index]) == [("aten::index.Tensor", [address(x), address(index)])]
    assert reads(lambda: torch._foreach_add_([x], [y])) == [
        ("aten::_foreach_add_.List", [address(x), address(y)])
    ]


def test_a_tensor_that_an_operator_overwrites_completely_is_not_read() -> None:
    x, y, out = torch.ones(3), torch.ones(3), torch.empty(3)

    assert reads(lambda: out.copy_(x)) == [("aten::copy_", [address(x)])]
    assert reads(lambda: torch.add(x, y, out=out)) == [("aten::add.out", [address(x), address(y)])]
    assert reads(lambda: [out.zero_(), out.fill_(1), out.normal_()]) == [
        ("aten::zero_", []),
        ("aten::fill_.Scalar", []),
        ("aten::normal_", []),
    ]
    assert reads(lambda: torch.zeros_like(x)) == [("aten::zeros_like", [])]


def test_a_tensor_that_an_operator_updates_in_place_is_read() -> None:
    x, y = torch.ones(3), torch.ones(3)

    assert reads(lambda: x.add_(y)) == [("aten::add_.Tensor", [address(x), address(y)])]


def test_a_tensor_made_of_numbers_has_one_writer() -> None:
    calls = Calls()
    with Operators(calls):
        x = torch.tensor([1, 2])

    assert (calls.writer(x), calls.read) == ("aten::lift_fresh", [("aten::lift_fresh", [])])


# ---- threads ----


def test_operators_of_a_thread_that_the_program_starts_are_passed_on() -> None:
    calls = Calls()
    mode = Operators(calls)
    with mode, mode.carried():
        thread = threading.Thread(target=lambda: torch.ones(3).add_(1))
        thread.start()
        thread.join()

    assert calls.names == ["aten::ones", "aten::add_.Tensor"]


def test_operators_of_a_thread_that_outlives_the_mode_are_not_passed_on() -> None:
    calls, go = Calls(), threading.Event()
    mode = Operators(calls)
    with mode, mode.carried():
        thread = threading.Thread(target=lambda: (go.wait(), torch.ones(3)))
        thread.start()
    go.set()
    thread.join()

    assert calls.wrote == []
    assert torch.utils._python_dispatch._len_torch_dispatch_stack() == 0


# ---- no writes ----


def test_views_and_uninitialised_tensors_are_not_written() -> None:
    x, calls = torch.ones(4, 4), Calls()
    with Operators(calls):
        x.view(16)[2:].detach()
        x.t().split(2)
        torch.empty(3).new_empty(2).resize_(5)
        torch.empty_like(x).t_()

    assert calls.wrote == []


def test_in_inference_mode_a_composite_operator_writes_only_what_it_copied() -> None:
    x, calls = torch.ones(4, 2), Calls()
    with Operators(calls), torch.inference_mode():
        x.reshape(8)
        torch.nn.functional.dropout(x, 0.5, training=False)
        y = x.t().reshape(8)

    assert calls.names == ["aten::reshape"]
    assert calls.writer(y) == "aten::reshape"


def test_operators_of_a_recorder_are_not_passed_on() -> None:
    x, calls = torch.ones(3), Calls()
    with Operators(calls):
        with hooks.hidden():
            x + 1
        with torch._C._DisableTorchDispatch():
            x + 1

    assert calls.wrote == []


def test_operators_of_the_listener_itself_are_not_passed_on() -> None:
    class Cloning(Calls):
        def after(self, effect: Effect, args: Any, kwargs: Any, result: Any, before: Any) -> None:
            super().after(effect, args, kwargs, result, before)
            result.clone()

    calls = Cloning()
    with Operators(calls):
        torch.ones(3)

    assert calls.names == ["aten::ones"]


def test_an_operator_that_raises_wrote_nothing_and_the_mode_is_left() -> None:
    calls = Calls()
    with pytest.raises(RuntimeError), Operators(calls):
        torch.mm(torch.empty(2, 3), torch.empty(2, 3))
    torch.ones(3)

    assert calls.wrote == []


# ---- with torch.compile ----


def test_the_writer_of_a_compiled_kernels_input_is_known_forward_and_backward() -> None:
    x, w = torch.randn(4, 8), torch.randn(8, 8, requires_grad=True)
    calls = Calls()
    readers = Readers(calls)
    with virtual_gpu(), hooks.installed(readers), Operators(calls):
        y = torch.compile(lambda x, w: torch.sigmoid(x @ w) @ w)(x, w)
        forward = len(readers.found)
        y.backward(torch.ones_like(y))

    assert "aten::mm.out" in readers.found[0].values()
    assert any("aten::mm.out" in launch.values() for launch in readers.found[forward:])
    assert w.grad is not None


def test_a_fallback_of_inductor_is_known_as_the_writer() -> None:
    x, calls = torch.eye(3), Calls()
    readers = Readers(calls)
    with virtual_gpu(), hooks.installed(readers), Operators(calls):
        torch.compile(lambda x: torch.cdist(x, x) + 1)(x)

    assert "aten::_cdist_forward" in readers.found[-1].values()


def test_an_exported_program_is_decomposed_as_without_the_mode() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.linear(x, weight).sum(-1)

    class Paused(Calls):
        def passes_over(self) -> bool:
            return True

    exported = torch.export.export(Model(), (torch.ones(2, 2), torch.ones(2, 2)))
    with Operators(Paused()):
        graph = exported.run_decompositions().graph

    assert {"aten.mm.default", "aten.sum.dim_IntList"} <= {str(node.target) for node in graph.nodes}


def test_operators_of_the_compiler_are_not_passed_on() -> None:
    x, calls = torch.randn(8), Calls()
    with virtual_gpu(), Operators(calls):
        torch.compile(lambda x: torch.sin(x) + 1)(x)

    assert calls.wrote == []
