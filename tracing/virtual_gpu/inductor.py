"""What Inductor asks of a GPU, answered for tensors on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch._dynamo
import torch._inductor.config as inductor_config
from torch._dynamo.device_interface import CpuInterface
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.hints import DeviceProperties
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch.utils import _triton as torch_triton

from tracing.upstream.backends import GPUTarget
from tracing.upstream.patch import replaced
from tracing.virtual_gpu.chips import CHIPS, device_index

_SETTINGS = {
    "cpu_backend": "triton",
    "compile_threads": 1,  # a worker process has no virtual GPU
    "autotune_local_cache": False,
    "autotune_remote_cache": False,
    "use_static_cuda_launcher": False,  # it launches through the CUDA driver and knows no hooks
}


@contextmanager
def installed(name: str, target: GPUTarget) -> Iterator[None]:
    """Inside, torch.compile writes and launches a target's Triton kernels for tensors on the CPU."""
    with ExitStack() as stack:
        _forget_compiled(stack)
        _set(stack, inductor_config, _SETTINGS)
        # Graphs of the virtual GPU are stored beside others of CPU tensors: without a tag they are the same.
        tag = f"{torch.compiler.config.cache_key_tag}virtual-{name}"
        _set(stack, torch.compiler.config, {"cache_key_tag": tag})  # type: ignore[attr-defined, unused-ignore]
        # It looks for devices; without one, Dynamo would trace into the launch of a user's kernel.
        stack.enter_context(replaced(torch_triton, "has_triton", lambda **options: True))
        # torch 2.15 asks it before it writes the call of a user's kernel; earlier versions do not ask.
        available = staticmethod(lambda device=None: None)
        stack.enter_context(replaced(CpuInterface, "raise_if_triton_unavailable", available))
        properties = _device_properties(name, target)
        # Inductor chooses its code by the properties of the tensors' device; here it must see the target's.
        stack.enter_context(replaced(DeviceProperties, "create", classmethod(lambda cls, device: properties)))
        # Generated code and its autotuner would replace the driver, or complain that there is none.
        for name_of_setter in ("set_driver_to_gpu", "set_driver_to_cpu"):
            stack.enter_context(replaced(triton_helpers, name_of_setter, lambda: None))
        stack.enter_context(replaced(CachingAutotuner, "get_device_interface", lambda self: _Interface))
        # Equal times: the first configuration wins, without a launch.
        stack.enter_context(replaced(CachingAutotuner, "bench", lambda self, launcher, *args, **kwargs: 1.0))
        yield


def _set(stack: ExitStack, config: Any, settings: Mapping[str, object]) -> None:
    # Torch keeps a setting for the thread that makes it; other threads read the defaults.
    stack.enter_context(config.patch(settings))
    for name, value in settings.items():
        stack.enter_context(replaced(config._config[name], "default", value))


def _device_properties(name: str, target: GPUTarget) -> DeviceProperties:
    chip = CHIPS[name]
    major = target.arch // 10 if target.backend == "cuda" else int(name[3:-2])
    return DeviceProperties(
        type=target.backend,
        index=device_index(name),
        multi_processor_count=chip.processors,
        cc=target.arch,
        major=major,
        regs_per_multiprocessor=chip.registers,
        max_threads_per_multi_processor=chip.threads,
        max_threads_per_block=1024,
        warp_size=target.warp_size,
    )


def _forget_compiled(stack: ExitStack) -> None:
    # Dynamo's guards do not see the driver: code compiled for the CPU would run inside, and ours afterwards.
    # What torch finds out about the driver it keeps for the process, and puts into the keys of kernels.
    answers = (torch_triton.has_triton, torch_triton.triton_backend, torch_triton.triton_hash_with_backend)
    for clear in (torch._dynamo.reset, *(answer.cache_clear for answer in answers)):
        clear()
        stack.callback(clear)


class _Interface(CpuInterface):
    """The CPU, answering what a generated kernel's launcher asks of a GPU."""

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def exchange_device(device: int) -> int:
        return 0

    @staticmethod
    def maybe_exchange_device(device: int) -> int:
        return 0

    @staticmethod
    def get_raw_stream(device: int) -> int:
        return 0

    @staticmethod
    def synchronize(device: Any = None) -> None: ...
