"""Kernel arguments that are tuples are recorded member by member, on every launch path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO
from triton.runtime.interpreter import InterpretedFunction

from tracing import store
from tracing.digest.host import digest
from tracing.model import KernelArg, KernelLaunch
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


def weighted(inputs, results, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total, rest, one = results
    shifted, weight = rest
    value = tl.load(inputs[0] + at, mask=at < n) + tl.load(inputs[1] + at, mask=at < n) * weight
    tl.store(total + at, value, mask=at < n)
    tl.store(shifted + at, value + one, mask=at < n)


compiled_kernel = triton.jit(weighted)


class Results(NamedTuple):
    total: torch.Tensor
    rest: tuple[torch.Tensor, int]
    one: int


def recorded(runs: Path, call: Callable[[], object]) -> list[KernelLaunch]:
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer):
        call()
    return list(store.Run(writer.path).launches())


def arguments(launch: KernelLaunch) -> dict[str, KernelArg]:
    return {arg.name: arg for arg in launch.args}


def test_members_of_a_tuple_are_arguments_with_roles_and_digests(gpu: None, tmp_path: Path) -> None:
    x, w, total, shifted = torch.randn(32), torch.randn(32), torch.empty(32), torch.empty(32)
    nested = (x, w), Results(total, (shifted, 3), 1)
    (launch,) = recorded(tmp_path, lambda: compiled_kernel[(1,)](*nested, 32, BLOCK=32))
    args = arguments(launch)

    assert {name: arg.declared for name, arg in args.items() if arg.tensor} == {
        "inputs.0": "in",
        "inputs.1": "in",
        "results.0": "out",
        "results.1.0": "out",
    }
    assert {name: arg.value for name, arg in args.items() if not arg.tensor} == {"results.1.1": 3, "n": 32}
    assert launch.kernel.constants["results.2"] == "1"
    assert [args[name].before for name in ("inputs.0", "inputs.1")] == [digest(x), digest(w)]
    assert [args[name].after for name in ("results.0", "results.1.0")] == [digest(total), digest(shifted)]
    assert torch.equal(total, x + w * 3)


def test_members_of_a_tuple_of_an_interpreted_kernel_are_arguments(tmp_path: Path) -> None:
    x, w, total, shifted = (torch.ones(32) for _ in range(4))
    kernel = InterpretedFunction(weighted)
    (launch,) = recorded(tmp_path, lambda: kernel[(1,)]((x, w), (total, (shifted, 3), 5), 32, BLOCK=32))
    args = arguments(launch)

    assert {name: arg.declared for name, arg in args.items() if arg.tensor} == {
        "inputs.0": "in",
        "inputs.1": "in",
        "results.0": "out",
        "results.1.0": "out",
    }
    assert {name: arg.value for name, arg in args.items() if not arg.tensor} == {
        "results.1.1": 3,
        "results.2": 5,
        "n": 32,
    }
    assert args["results.1.0"].after == digest(torch.full((32,), 9.0))


def test_launches_whose_tuples_are_nested_differently_are_distinguished(tmp_path: Path) -> None:
    def first(pair, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(pair[0] + at, 1.0)

    kernel, x = InterpretedFunction(first), torch.ones(8)
    launches = recorded(tmp_path, lambda: [kernel[(1,)](pair, BLOCK=8) for pair in ((x,), (x, 2), (x, (3,)))])

    assert [[arg.name for arg in launch.args] for launch in launches] == [
        ["pair.0"],
        ["pair.0", "pair.1"],
        ["pair.0", "pair.1.0"],
    ]


def test_a_compiled_function_that_launches_with_tuples_is_recorded(gpu: None, tmp_path: Path) -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        total, shifted = torch.empty_like(x), torch.empty_like(x)
        compiled_kernel[(1,)]((x, w), (total, (shifted, 3), 1), 32, BLOCK=32)
        return total + shifted

    x, w = torch.randn(32), torch.randn(32)
    launches = recorded(tmp_path, lambda: torch.compile(program)(x, w))
    (launch,) = [one for one in launches if one.kernel_name == "weighted"]

    assert arguments(launch)["inputs.1"].before == digest(w)


def test_a_tensor_of_a_tuple_has_a_last_writer(gpu: None, tmp_path: Path) -> None:
    x, w, total, shifted = (torch.ones(32) for _ in range(4))

    def program() -> None:
        w.mul_(2)
        compiled_kernel[(1,)]((x, w), (total, (shifted, 3), 1), 32, BLOCK=32)

    (launch,) = recorded(tmp_path, program)

    assert {name: arg.writer for name, arg in arguments(launch).items() if arg.writer} == {
        "inputs.1": "aten::mul_.Tensor"
    }
