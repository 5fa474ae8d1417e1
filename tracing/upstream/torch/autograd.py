"""Autograd: its state on the current thread, and the start of its engine."""

from __future__ import annotations

import traceback
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import torch
from torch.autograd.graph import _engine_run_backward
from torch.utils._python_dispatch import _disable_current_modes

from tracing.upstream.contract import require
from tracing.upstream.patch import Method, Wrapper, patched

# () -> int: the number of the backward pass that runs on this thread; NO_BACKWARD if none does
backward_pass = torch._C._current_graph_task_id
NO_BACKWARD = -1

# The function in which the thread that called backward() waits until the backward pass has ended.
BACKWARD_FUNCTION = _engine_run_backward.__name__

# (bool) -> None: switches gradients on or off, without a context manager
set_grad_enabled = torch._C._set_grad_enabled


def around_engine(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, each backward pass calls `wrapper(original)`."""
    return patched(torch.autograd, _engine_run_backward.__name__, wrapper)


@cache
def start_engine_without_gpu() -> None:
    """Start the engine of backward passes, unless there is a GPU, so that forked processes can use it.

    The first backward pass starts a thread for each device, and torch refuses backward passes in a process
    that is forked afterwards. A CUDA build without a GPU counts one device after its first FakeTensorMode,
    since pytorch #163187 ("Return NoOpDeviceGuardImpl in replace of CudaDeviceGuard"), and none before.
    """
    if torch.cuda.device_count():
        return
    with _disable_current_modes(), torch.inference_mode(False), torch.enable_grad():
        torch.ones(1, device="cpu", requires_grad=True).sum().backward()  # type: ignore[no-untyped-call, unused-ignore]


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    passes: list[int] = []
    waiting: list[bool] = []
    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda gradient: passes.append(backward_pass()))  # type: ignore[no-untyped-call, unused-ignore]
    x.register_hook(lambda gradient: waiting.append(_is_called(BACKWARD_FUNCTION)))  # type: ignore[no-untyped-call, unused-ignore]
    x.sum().backward()  # type: ignore[no-untyped-call, unused-ignore]
    started: list[bool] = []

    def counted(original: Method) -> Method:
        def run(*args: Any, **kwargs: Any) -> Any:
            started.append(True)
            return original(*args, **kwargs)

        return run

    with around_engine(counted):
        y = torch.ones(1, requires_grad=True)
        y.sum().backward()  # type: ignore[no-untyped-call, unused-ignore]
        torch.autograd.grad(y.sum(), y)
    require(len(started) == 2, "an engine that can be wrapped")
    require(backward_pass() == NO_BACKWARD, f"the number {NO_BACKWARD} outside of a backward pass")
    require(passes[0] != NO_BACKWARD, "a number inside of a backward pass")

    require(waiting == [True], f"{BACKWARD_FUNCTION} on the stack inside of a backward pass")

    enabled = torch.is_grad_enabled()
    set_grad_enabled(not enabled)
    require(torch.is_grad_enabled() is not enabled, "gradients that can be switched")
    set_grad_enabled(enabled)


def _is_called(function: str) -> bool:
    return any(frame.name == function for frame in traceback.extract_stack())
