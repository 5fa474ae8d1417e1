"""Records launches on the virtual GPU, and defines a kernel for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from handmade.records import INFO

from tracing import store
from tracing.model import KernelLaunch
from tracing.record.launches.launch_recorder import LaunchRecorder


def recorded(runs: Path, call: Callable[[], object], *options: Any, **named: Any) -> list[KernelLaunch]:
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer, *options, **named):
        call()
    return read(writer)


def read(writer: store.RunWriter) -> list[KernelLaunch]:
    return list(store.Run(writer.path).launches())


def add(x_ptr, BLOCK: tl.constexpr, y_ptr, n):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1, mask=at < n)


add_kernel = triton.jit(add)


def added(x: Any, y: Any = None) -> Any:
    y = torch.empty_like(x) if y is None else y
    add_kernel[(triton.cdiv(x.numel(), 64),)](x, 64, y, x.numel())
    return y


def raising(metadata: Any) -> None:
    raise ZeroDivisionError
