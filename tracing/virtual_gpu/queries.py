"""Answer a program's calls of `torch.cuda` as the target's device would."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.cuda.nvtx
from torch.cuda.amp import common as amp

from tracing.upstream.patch import Method, patched, replaced
from tracing.upstream.torch.dynamo import constant_result
from tracing.upstream.triton.backends import GPUTarget
from tracing.virtual_gpu import streams
from tracing.virtual_gpu.chips import capability, properties
from tracing.virtual_gpu.limits import BeyondVirtualGpu
from tracing.virtual_gpu.querying_module import program_asks

_Answers = Mapping[str, Callable[..., Any]]


@contextmanager
def installed(name: str, target: GPUTarget) -> Iterator[None]:
    """While active, the program sees one CUDA device, the target; torch's own code sees none."""
    with ExitStack() as stack:
        stack.callback(streams.set_stream, streams.DEFAULT)
        for question, answer in _facts(name, target).items():
            if hasattr(torch.cuda, question):
                stack.enter_context(patched(torch.cuda, question, _constant(answer)))
        for owner, answers in _ANSWERS:
            for question, answer in answers.items():
                if hasattr(owner, question):
                    stack.enter_context(patched(owner, question, _for_the_program(answer)))
        for kind, replacement in _CLASSES.items():
            stack.enter_context(replaced(torch.cuda, kind, replacement))
        stack.enter_context(replaced(torch.cuda.CUDAGraph, "__new__", _no_graph))
        # GradScaler asks for the program
        stack.enter_context(replaced(amp, "amp_definitely_not_available", lambda: False))
        for question, answer in _ACCELERATOR.items():
            if hasattr(torch.accelerator, question):
                stack.enter_context(patched(torch.accelerator, question, _for_the_program(answer)))
        stack.enter_context(patched(torch, "get_device_module", _for_the_program(_device_module)))
        for question, answer in _RANDOM.items():  # torch.random.fork_rng asks for the program
            for owner in (torch.cuda, torch.cuda.random):
                stack.enter_context(replaced(owner, question, answer))
        yield


def _device_module(device: torch.device | str | None = None) -> Any:
    return torch.cuda if device is None else getattr(torch, torch.device(device).type)


def _facts(name: str, target: GPUTarget) -> _Answers:
    device_properties = properties(name, target)
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: device_properties.name,
        "get_device_capability": lambda device=None: capability(name, target),
        "get_device_properties": lambda device=None: device_properties,
        "get_arch_list": lambda: [name],
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_tf32_supported": lambda: target.backend == "cuda",
        "mem_get_info": lambda device=None: (device_properties.total_memory,) * 2,
    }


class _Device:
    """Replaces torch.cuda.device: there is one device."""

    def __init__(self, device: Any) -> None:
        self.idx = self.prev_idx = 0

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None: ...


def _no_graph(*args: Any, **kwargs: Any) -> None:
    raise BeyondVirtualGpu("the virtual GPU captures no CUDA graph", "run the program without, or on a GPU")


_CLASSES = {
    "Stream": streams.Stream,
    "Event": streams.Event,
    "StreamContext": streams.StreamContext,
    "device": _Device,
    "device_of": _Device,
}
_NOTHING: Callable[..., None] = lambda *args, **kwargs: None  # noqa: E731
_ACTIONS: _Answers = {
    "init": _NOTHING,
    "synchronize": _NOTHING,
    "set_device": _NOTHING,
    "stream": streams.StreamContext,
    "set_stream": streams.set_stream,
    "current_stream": lambda device=None: streams.Stream.current,
    "default_stream": lambda device=None: streams.DEFAULT,
    "is_current_stream_capturing": lambda: False,
    "empty_cache": _NOTHING,
    "ipc_collect": _NOTHING,
    "reset_peak_memory_stats": _NOTHING,
    "reset_max_memory_allocated": _NOTHING,
    "memory_stats": lambda device=None: Counter(),
    "memory_summary": lambda device=None, abbreviated=False: "the virtual GPU does not measure memory",
    **dict.fromkeys(
        ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
        lambda device=None: 0,
    ),
    "manual_seed": lambda seed: _NOTHING(torch.manual_seed(seed)),
    "manual_seed_all": lambda seed: _NOTHING(torch.manual_seed(seed)),
    "seed": lambda: _NOTHING(torch.seed()),
    "initial_seed": torch.initial_seed,
    "set_per_process_memory_fraction": _NOTHING,
    "get_per_process_memory_fraction": lambda device=None: 1.0,
    "can_device_access_peer": lambda device, peer_device: False,
    "memory_snapshot": lambda *args, **kwargs: [],
}
_MEMORY: _Answers = {
    "memory_snapshot": lambda *args, **kwargs: [],
    "_record_memory_history": _NOTHING,
    "_snapshot": lambda *args, **kwargs: {"segments": [], "device_traces": []},
}
# the device's generator is that of the CPU
_RANDOM: _Answers = {
    "get_rng_state": lambda device=None: torch.get_rng_state(),
    "get_rng_state_all": lambda: [torch.get_rng_state()],
    "set_rng_state": lambda new_state, device=None: torch.set_rng_state(new_state),
    "set_rng_state_all": lambda new_states: _NOTHING(*map(torch.set_rng_state, new_states)),
}
_NVTX: _Answers = {
    "range_push": lambda message: 0,
    "range_pop": lambda: 0,
    "range_start": lambda message: 0,
    "range_end": _NOTHING,
    "mark": _NOTHING,
}
_ANSWERS = ((torch.cuda, _ACTIONS), (torch.cuda.nvtx, _NVTX), (torch.cuda.memory, _MEMORY))
_ACCELERATOR: _Answers = {
    "is_available": lambda: True,
    "device_count": lambda: 1,
    "current_accelerator": lambda check_available=False: torch.device("cuda"),
    "current_device_index": lambda: 0,
    "set_device_index": _NOTHING,
    "synchronize": _NOTHING,
    "current_stream": lambda device=None: streams.Stream.current,
    "set_stream": streams.set_stream,
}


def _for_the_program(answer: Callable[..., Any]) -> Callable[[Method], Method]:
    def wrapper(original: Method) -> Method:
        def asked(*args: Any, **kwargs: Any) -> Any:
            return (answer if program_asks(triton=True) else original)(*args, **kwargs)

        return asked

    return wrapper


def _constant(answer: Callable[..., Any]) -> Callable[[Method], Method]:
    # Dynamo asks while it traces, and keeps the answer in the compiled code
    def wrapper(original: Method) -> Method:
        asked = _for_the_program(answer)(original)
        return constant_result(functools.wraps(original)(asked))

    return wrapper
