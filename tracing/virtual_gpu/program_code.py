"""Let Python code that torch calls make tensors on "cuda": backward passes, and operators of the program.

torch takes a function mode off its stack while the mode handles a call, so this code would run without the
placement. An operator's kernel for CUDA becomes that for the host, where its tensors are.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tracing.upstream.patch import Method, Wrapper, patched
from tracing.upstream.torch.autograd import around_engine
from tracing.upstream.torch.dynamo import untraced
from tracing.upstream.torch.dynamo_tracing import function_modes
from tracing.upstream.torch.operator_schemas import OWN_NAMESPACES

_ON_HOST = {"CUDA": "CPU", "AutogradCUDA": "AutogradCPU"}
_TRACED = ("Meta",)  # kernels that see the devices of fake tensors


@contextmanager
def program_code_placed(placement: TorchFunctionMode) -> Iterator[None]:
    """While active, backward passes, and operators that are defined meanwhile, run with the placement."""
    ended = threading.Event()  # operators live on
    placed = _placed(placement, ended)
    with around_engine(placed), patched(torch.library.Library, "impl", _kernels(placed)):
        try:
            yield
        finally:
            ended.set()


def _placed(placement: TorchFunctionMode, ended: threading.Event) -> Wrapper:
    def wrapper(original: Method) -> Method:
        @untraced  # Dynamo traces the engine's function, as of autograd.grad in compiled code, not this one
        @functools.wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            if ended.is_set() or any(one is placement for one in function_modes()):
                return original(*args, **kwargs)
            with placement:
                return original(*args, **kwargs)

        return called

    return wrapper


def _kernels(placed: Wrapper) -> Wrapper:
    on_device: set[tuple[str, str, str]] = set()  # with a kernel for CUDA, which replaces that for the host

    def wrapper(original: Method) -> Method:
        def impl(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> Any:
            key = dispatch_key or self.dispatch_key
            if self.ns in OWN_NAMESPACES or key in _TRACED:
                return original(self, op_name, fn, dispatch_key, **options)
            target = _ON_HOST.get(key, key)
            if target != key:
                on_device.add((self.ns, str(op_name), target))
                options = {**options, "allow_override": True}
            elif (self.ns, str(op_name), key) in on_device:
                return None
            # C++ knows the function for a fallthrough by its identity
            runs = hasattr(fn, "__code__") and fn is not torch.library.fallthrough_kernel
            return original(self, op_name, placed(fn) if runs else fn, target, **options)

        return impl

    return wrapper
