"""The devices on which torch's optimizers keep their state in tensors, as CUDA graphs need."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch

from tracing.upstream.contract import require
from tracing.upstream.patch import patched

_DEVICES = "_get_capturable_supported_devices"  # a function of torch.optim.optimizer


@contextmanager
def capturable_on(device: str) -> Iterator[None]:
    """While active, optimizers accept `capturable=True` for parameters on devices of a type, too.

    device -- "cpu"
    """

    def also_on(original: Callable[..., list[str]]) -> Callable[..., list[str]]:
        return lambda *args, **kwargs: [*original(*args, **kwargs), device]

    with ExitStack() as stack:
        for module in _modules():
            stack.enter_context(patched(module, _DEVICES, also_on))
        yield


def _modules() -> list[types.ModuleType]:
    # each optimizer has imported the function into its own module, which torch.optim does not name
    modules = [one for name, one in [*sys.modules.items()] if name.startswith("torch.optim.")]
    return [one for one in modules if hasattr(one, _DEVICES)]


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    with capturable_on("cpu"):
        torch.optim.Adam([parameter], 0.5, capturable=True).step()
    require(parameter.tolist() != [1, 1], "an optimizer that takes `capturable` parameters on the CPU")
