"""Inductor's Triton templates for tensors on the host, as it writes them for a GPU.

torch has a C++ template of FlexAttention for the host, without backward; and there it leaves the bias of a
convolution to the library, so the template of a convolution would omit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType, SimpleNamespace
from typing import Any

import torch
from torch._inductor import choices
from torch._inductor.choices import InductorChoices
from torch._inductor.kernel.conv import convolution
from torch._inductor.kernel.flex import flex_decoding
from torch._inductor.kernel.flex.flex_attention import flex_attention
from torch.nn.attention import flex_attention as interface

from tracing.upstream.contract import require, require_methods
from tracing.upstream.patch import Method, patched, replaced

_HOST, _NO_DEVICE = "cpu", "no device"
_HEURISTICS = {"cuda": "CUDAConfigHeuristic", "hip": "ROCmConfigHeuristic"}
_BLOCKS = ("get_flex_attention_fwd_configs", "get_flex_attention_bwd_configs", "get_flex_decode_configs")


@contextmanager
def templates_on_host(device_type: str, capability: tuple[int, int], processors: int) -> Iterator[None]:
    """While active, FlexAttention and convolutions of tensors on the host are lowered as on a GPU.

    device_type -- "cuda" or "hip"
    capability  -- that of the GPU, by which torch chooses the blocks: (9, 0)
    processors  -- the GPU's multiprocessors, by which torch splits the keys of a short query
    """
    heuristics = getattr(choices, _HEURISTICS[device_type])()
    properties = SimpleNamespace(multi_processor_count=processors)

    def on_gpu(original: Method) -> Method:
        def asked(*args: Any, **options: Any) -> Any:
            with (
                replaced(torch.cuda, "get_device_capability", lambda device=None: capability),
                replaced(torch.cuda, "get_device_properties", lambda device=None: properties),
                replaced(InductorChoices, "get_config_heuristics", lambda self, device_type="": heuristics),
            ):
                return original(*args, **options)

        return asked

    with ExitStack() as stack:
        for function in _with_a_case_for_the_host():
            stack.enter_context(_without_it(function))
        for name in _BLOCKS:
            stack.enter_context(patched(InductorChoices, name, on_gpu))
        stack.enter_context(patched(flex_decoding, "get_split_k", on_gpu))
        yield


def _with_a_case_for_the_host() -> list[FunctionType]:
    lowerings = [_innermost(function) for function in (flex_attention, convolution)]
    return [*lowerings, interface._validate_device, interface._apply_kernel_options]


def _innermost(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


@contextmanager
def _without_it(function: FunctionType) -> Iterator[None]:
    # as if no device's type were "cpu"
    code = function.__code__
    constants = tuple(_NO_DEVICE if one == _HOST else one for one in code.co_consts)
    function.__code__ = code.replace(co_consts=constants)
    try:
        yield
    finally:
        function.__code__ = code


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    for function in _with_a_case_for_the_host():
        needed = f"{function.__qualname__}() compares the type of a device with {_HOST!r}"
        require({_HOST, _NO_DEVICE} & set(function.__code__.co_consts), needed)
    require_methods(InductorChoices, "get_config_heuristics", *_BLOCKS)
    for heuristics in _HEURISTICS.values():
        require(hasattr(choices, heuristics), f"{heuristics} of Inductor's choices")
    require(hasattr(flex_decoding, "get_split_k"), "get_split_k() of flex_decoding")
