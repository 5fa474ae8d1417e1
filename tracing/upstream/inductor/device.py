"""The device that Inductor generates code for, and the device interface of generated code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch._dynamo.device_interface import CpuInterface
from torch._inductor.codegen.common import get_device_op_overrides
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.hints import DeviceProperties
from torch.utils import _triton as torch_triton

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.inductor.autotuner import device_interface_is
from tracing.upstream.patch import replaced
from tracing.upstream.torch.dynamo import forget_compiled

# functions that cache facts about Triton's driver
_DRIVER_ANSWERS = (
    torch_triton.has_triton,
    torch_triton.triton_backend,
    torch_triton.triton_hash_with_backend,
)


_DESCRIPTORS = "has_triton_tensor_descriptor_host_tma"
_NO_GUARD = "torch._ops.contextlib.nullcontext()"  # as later versions than torch 2.11 write it


class HostInterface(CpuInterface):
    """The CPU with the interface that launchers of generated kernels expect of a GPU."""

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


@contextmanager
def host_is_gpu(**properties: Any) -> Iterator[None]:
    """While active, Inductor writes code for a GPU, and that code launches on tensors of the host.

    properties -- the fields of DeviceProperties: type, index, multi_processor_count, cc, ...
    """
    gpu = DeviceProperties(**properties)
    with ExitStack() as stack:
        # It looks for devices; if there is none, Dynamo traces into the launch of a user's kernel.
        stack.enter_context(replaced(torch_triton, "has_triton", lambda **options: True))
        # Dynamo asks whether to trace a TensorDescriptor of the host as one operation; else the graph breaks.
        descriptors = _has_descriptors(properties["type"], properties["cc"])
        stack.enter_context(replaced(torch_triton, _DESCRIPTORS, lambda: descriptors))
        # Called for a user's kernel launched with options of the backend, since pytorch #187028 (2.15).
        available = staticmethod(lambda device=None: None)
        stack.enter_context(replaced(CpuInterface, "raise_if_triton_unavailable", available))
        # Inductor chooses its code by the properties of the tensors' device; here it must see the GPU's.
        stack.enter_context(replaced(DeviceProperties, "create", classmethod(lambda cls, device: gpu)))
        # Generated code and its autotuner would replace the driver, or complain that there is none.
        for setter in ("set_driver_to_gpu", "set_driver_to_cpu"):
            stack.enter_context(replaced(triton_helpers, setter, lambda: None))
        # With `benchmark_kernel` Inductor indents a function, and writes "with pass:" in torch 2.11.
        stack.enter_context(replaced(_host_overrides(), "import_get_raw_stream_as", _raw_stream))
        stack.enter_context(replaced(_host_overrides(), "device_guard", lambda self, device: _NO_GUARD))
        stack.enter_context(device_interface_is(HostInterface))
        yield


def _has_descriptors(device_type: str, cc: int | str) -> bool:
    # as torch says of a GPU: from the capability 9.0 on, and never of HIP's
    return device_type == "cuda" and int(cc) >= 90


def _host_overrides() -> type:
    # asked for, since an import of its module only has torch 2.11 register no other device
    return type(get_device_op_overrides("cpu"))


def _raw_stream(overrides: object, name: str) -> str:
    return f"{name} = lambda device: 0"


@contextmanager
def driver_forgotten() -> Iterator[None]:
    """Drop, at the beginning and at the end, compiled code and torch's cached facts about Triton's driver.

    Dynamo's guards do not check the driver, so code compiled for one device would run on the other. torch
    caches facts about the driver for the process, and includes them in the keys of kernels.
    """
    with ExitStack() as stack:
        for clear in (forget_compiled, *(answer.cache_clear for answer in _DRIVER_ANSWERS)):
            clear()
            stack.callback(clear)
        yield


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    fields = ("type", "index", "multi_processor_count", "cc", "major", "regs_per_multiprocessor")
    require_parameters(DeviceProperties, *fields, "max_threads_per_multi_processor", "warp_size")
    require_methods(DeviceProperties, "create")
    for method in ("import_get_raw_stream_as", "device_guard"):  # in torch 2.15 those of a base class
        require(hasattr(_host_overrides(), method), f"{_host_overrides().__name__}.{method}")
    for setter in ("set_driver_to_gpu", "set_driver_to_cpu"):
        require(hasattr(triton_helpers, setter), f"{setter} of Inductor's helpers")
    require(hasattr(torch_triton, _DESCRIPTORS), f"{_DESCRIPTORS}() of torch.utils._triton")
    for answer in _DRIVER_ANSWERS:
        require(hasattr(answer, "cache_clear"), f"a cache of {answer.__name__}() that can be cleared")
