"""Arguments that are no tensors, but have `data_ptr` and `dtype`, are recorded as what they point to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from recorded.launches import recorded
from triton.compiler import CompiledKernel

from tracing.digest.host import digest
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


class Buffer:
    """A pointer into a tensor, as libraries of kernels have them for other types and strides."""

    def __init__(self, tensor: torch.Tensor, offset: int = 0, *strides: int, inside: Any = None) -> None:
        self.base = tensor if inside is None else inside
        self.dtype = tensor.dtype
        self._address = tensor.data_ptr() + offset * tensor.element_size()
        self._strides = strides

    def data_ptr(self) -> int:
        return self._address

    def stride(self) -> tuple[int, ...]:
        return self._strides


@triton.jit
def doubled_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at) * 2)


def test_an_object_is_recorded_as_the_tensor_that_it_holds(tmp_path: Path) -> None:
    x, y = torch.arange(16.0), torch.zeros(32)
    (launch,) = recorded(tmp_path, lambda: doubled_kernel[(1,)](Buffer(x), Buffer(y, 16), 16))

    source, left, *_ = launch.args
    assert source.before == digest(x)
    assert left.tensor is not None and left.tensor.offset == 16
    assert left.after == digest(2 * x)


class Storage:
    __slots__ = ("data",)

    def __init__(self, data: torch.Tensor) -> None:
        self.data = data


@pytest.mark.parametrize("kind", [lambda x: SimpleNamespace(data=x), Storage])
def test_the_tensor_may_be_in_a_member_of_the_object(tmp_path: Path, kind: Any) -> None:
    x, y = torch.arange(16.0), torch.zeros(16)
    buffer = Buffer(x, inside=kind(x))
    (launch,) = recorded(tmp_path, lambda: doubled_kernel[(1,)](buffer, y, 16))

    assert launch.args[0].before == digest(x)


@pytest.mark.parametrize("how", ["elsewhere", "backwards"])
def test_an_object_that_reads_other_memory_is_recorded_by_its_class(tmp_path: Path, how: str) -> None:
    x, y = torch.arange(16.0), torch.zeros(16)
    buffer = Buffer(x, inside=x.clone()) if how == "elsewhere" else Buffer(x, 0, -1)
    (launch,) = recorded(tmp_path, lambda: doubled_kernel[(1,)](buffer, y, 16))

    assert launch.args[0].tensor is None
    assert str(launch.args[0].value).endswith(".Buffer object>")  # and no address


def test_too_few_arguments_are_an_error_of_the_launcher(tmp_path: Path) -> None:
    x, y = torch.arange(16.0), torch.zeros(16)
    compiled: CompiledKernel = doubled_kernel.warmup(x, y, 16, grid=(1,))

    def launches() -> None:
        compiled[(1, 1, 1)](x, y)

    with pytest.raises(Exception) as unrecorded:
        launches()
    with pytest.raises(type(unrecorded.value)) as error:
        recorded(tmp_path, launches)
    assert str(error.value) == str(unrecorded.value)
