"""The host writes into a tensor between two launches, unseen by torch; both runs feed a tensor by numpy.

A2 writes what is there already, by its address.

- numpy [writer]: host; runs b; read by shift as in_ptr at 1. Through numpy.
- address [writer]: host; runs b; read by shift as in_ptr at 1. Through ctypes.
- view [writer]: host; runs b; read by shift as in_ptr at 1. Through the numpy array of a view.
- kept [writer]: host; runs b; read by shift as in_ptr at 1. Through a numpy array from before the first
  launch.
- dlpack [writer]: host; runs b; read by shift as in_ptr at 1. Through DLPack.
- bytes [writer]: host; runs b; read by shift as in_ptr at 1. Through a memoryview.
- storage [writer]: host or operator of aten::fill_*; runs b; read by shift as in_ptr at 1. Through the
  storage, which torch fills by an operator.
- hidden_operator [writer]: host or operator of *; runs b; read by shift as in_ptr at 1. By an operator of
  which torch's dispatcher tells nobody.
- thread [writer]: host; runs b; read by shift as in_ptr at 1. By another thread.
- in_a [writer] (A = fault=numpy,variant=0; A2 = fault=numpy,variant=1; B = fault=none,variant=1): host; runs
  a; read by shift as in_ptr at 1. Only in A.
- in_both [writer] (A = fault=numpy,variant=0; A2 = fault=numpy,variant=1; B = fault=other,variant=1): host;
  runs ab; read by shift as in_ptr at 1. Other numbers in each.
- feed [writer]: host; read by shift as limit_ptr at 1. What both runs feed by numpy differs.
- first [writer]: start or host; read by scale as in_ptr at 0. Before the first launch.
- last [writer]: result or host. After the last launch, into the result.
- overwritten [writer]: equal; hidden. Before a kernel overwrites all of it.
- factor [writer]: configuration of scale; launch 0. A kernel's factor differs, the host's part is equal.
- twice [writer]: host; runs b; read by shift as in_ptr at 1. Before a second reader, too; the first shows it.
"""

import ctypes
import threading
from typing import Any

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def scale(in_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * factor)


@triton.jit
def shift(in_ptr, limit_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.minimum(tl.load(in_ptr + at) + 1, tl.load(limit_ptr + at)))


def numpy(tensor: torch.Tensor) -> None:
    tensor.numpy()[5] = 0.5


def undispatched(tensor: torch.Tensor) -> None:
    with torch._C._DisableTorchDispatch():
        tensor[5] = 0.25


def address(tensor: torch.Tensor) -> None:
    ctypes.memset(tensor.data_ptr() + 20, 1, 4)


def thread(tensor: torch.Tensor) -> None:
    other = threading.Thread(target=numpy, args=(tensor,))
    other.start()
    other.join()


def put(array: Any, index: int, value: Any) -> None:
    array[index] = value


WRITES: dict[str, Any] = {
    "numpy": numpy,
    "twice": numpy,
    "address": address,
    "view": lambda tensor: put(tensor[4:8].numpy(), 1, 0.5),
    "dlpack": lambda tensor: put(__import__("numpy").from_dlpack(tensor), 5, 0.5),
    "bytes": lambda tensor: put(memoryview(tensor.numpy()).cast("B"), 22, 1),
    "storage": lambda tensor: put(tensor.untyped_storage(), 22, 1),
    "hidden_operator": undispatched,
    "thread": thread,
    "other": lambda tensor: put(tensor.numpy(), 5, 0.25),
}


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> list[torch.Tensor]:
        between, out, again = (torch.zeros_like(x) for _ in range(3))
        limits = torch.full_like(x, 2.5)
        kept = between.numpy()
        if fault == "first":
            numpy(x)
        if fault == "overwritten":
            numpy(between)
        scale[(4,)](x, between, 3.5 if fault == "factor" else 2.5, BLOCK=16)
        limits.numpy()[8:16] = 1.25 if fault == "feed" else 1.5
        if variant:
            same = between.clone()
            ctypes.memmove(between.data_ptr(), same.data_ptr(), 256)
        if fault == "kept":
            kept[5] = 0.5
        WRITES.get(fault, lambda tensor: None)(between)
        shift[(4,)](between, limits, out, BLOCK=16)
        if fault == "twice":
            address(between)
        shift[(4,)](between, limits, again, BLOCK=16)
        if fault == "last":
            numpy(out)
        return [out, again]

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
