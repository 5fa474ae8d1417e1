"""A recorded launch again, on a GPU, with another build of its kernel: are its outputs those expected?

The cubin is launched through the CUDA driver, on copies of the inputs that were kept, laid out as they were.
Triton's own launcher is not used: it belongs to one compile, and here the code is any build of the kernel.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch

from tracing.analyze.bisect import Judgement
from tracing.analyze.judge import artefact
from tracing.errors import Problem
from tracing.model import KernelArg, KernelLaunch

Values: TypeAlias = Mapping[str, torch.Tensor | int | float | bool | None]
Tensors: TypeAlias = Mapping[str, torch.Tensor]

_PARAMETER = re.compile(r"\.param \.(\w+)[^,\n]*_param_\d+")
_THREADS = re.compile(r"\.(?:req|max)ntid (\d+)")
_ENTRY = re.compile(r"\.visible \.entry (\w+)\(")
_FLOATS = {"32": ctypes.c_float, "64": ctypes.c_double}
_INTEGERS = {"8": ctypes.c_uint8, "16": ctypes.c_uint16, "32": ctypes.c_uint32, "64": ctypes.c_uint64}
_SHARED_LIMIT = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_ELSE = "give `tracing bisect` a command that judges: `-- COMMAND`"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What counts as equal; both None: torch.testing.assert_close's values for the dtype."""

    atol: float | None = None
    rtol: float | None = None


def replayable(launch: KernelLaunch) -> None:
    """Raise Problem, with the reason, if a launch cannot be made again."""
    why = ""
    if not launch.kernel.target.startswith("cuda:"):
        why = f"its kernel was compiled for {launch.kernel.target}, and the replay knows CUDA alone"
    elif launch.kernel.num_ctas > 1:
        why = "its blocks form clusters"
    elif clash := _shared_memory(launch.args):
        why = f"{clash[0]} and {clash[1]} share memory, and one of them is written"
    if why:
        raise Problem(f"cannot be decided, because launch {launch.index} cannot be replayed: {why}", _ELSE)


def values(launch: KernelLaunch, kept: Tensors) -> dict[str, Any]:
    """What the launch was given: kept inputs, zeros where the kernel only writes, and scalars; on the CPU.

    kept -- the contents of arguments before the launch, by name, contiguous

    Strides and alignment are the recorded ones. Raises Problem if an input was not kept.
    """
    found: dict[str, Any] = {}
    for arg in launch.args:
        if arg.tensor is None:
            found[arg.name] = arg.value
            continue
        if arg.reads and arg.name not in kept:
            raise Problem(
                f"cannot be decided, because input {arg.name} of launch {launch.index} was not kept",
                f"record it with `tracing run CASE --keep-inputs --keep-outputs`, or {_ELSE}",
            )
        found[arg.name] = _laid_out(arg, kept.get(arg.name))
    return found


def device_name() -> str:
    """The name of this machine's GPU; makes CUDA unusable in children forked from this process later."""
    return torch.cuda.get_device_name()


class ReplayJudge:
    """Good is a build that computes what is expected, within a tolerance."""

    stages: Sequence[str] = ("ptx", "cubin")

    def __init__(
        self, launch: KernelLaunch, given: Values, expected: Tensors, tolerance: Tolerance, device: str
    ) -> None:
        """Judge by one launch.

        given    -- as `values` makes them
        expected -- on the CPU, what each written argument must hold afterwards
        device   -- the name of the GPU
        """
        self._launch, self._given, self._expected = launch, given, expected
        self._tolerance, self._device = tolerance, device

    @property
    def key(self) -> Sequence[str]:
        """What tells this judge from others: the launch, what is expected, the tolerance and the GPU."""
        bits = [hashlib.blake2b(_bytes(one)).hexdigest() for one in self._expected.values()]
        return ["replay", f"launch {self._launch.index}", *bits, repr(self._tolerance), self._device]

    def __call__(self, folder: Path) -> Judgement:
        """Launch the build in a folder; run it in a process of its own, for a fault spoils CUDA for good.

        A build that faults is bad; one that the driver does not load or launch cannot be told.
        """
        on_gpu = {
            name: _on_gpu(value) if isinstance(value, torch.Tensor) else value
            for name, value in self._given.items()
        }
        if refused := _launched(self._launch, folder, on_gpu):
            return Judgement("skip", refused)
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            return Judgement("bad", f"the kernel failed: {str(error).splitlines()[0]}")
        return self.compared({name: torch.as_tensor(on_gpu[name]).cpu() for name in self._expected})

    def compared(self, actual: Tensors) -> Judgement:
        """What is said of outputs, on the CPU."""
        atol, rtol = self._tolerance.atol, self._tolerance.rtol
        for name, expected in self._expected.items():
            try:
                torch.testing.assert_close(actual[name], expected, equal_nan=True, atol=atol, rtol=rtol)
            except AssertionError as error:
                said = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
                return Judgement("bad", f"{name}: {said}")
        return Judgement("good", f"{', '.join(self._expected)} as expected")


def parameters(ptx: str, launch: KernelLaunch, given: Values) -> list[Any] | str:
    """What the driver is given for each parameter of the kernel, as ctypes; or why that cannot be told."""
    entry = ptx[ptx.index(".entry") :]
    kinds = _PARAMETER.findall(entry[: entry.index("{")])
    passed = [name for name in given if name not in launch.kernel.constants]
    scratch = kinds[len(passed) :]  # pointers to memory that Triton allocates for a launch, if it needs any
    if len(kinds) < len(passed) or len(scratch) > 2 or any(kind[1:] != "64" for kind in scratch):
        return f"the PTX takes {len(kinds)} parameters, the launch gave {len(passed)}"
    if any(f"_param_{len(passed) + n}]" in entry for n in range(len(scratch))):
        return "the kernel uses scratch memory, which this replay does not give it"
    packed = [_packed(given[name], kind) for name, kind in zip(passed, kinds, strict=False)]
    if None in packed:
        return f"the PTX takes {passed[packed.index(None)]} as {kinds[packed.index(None)]}"
    return [*packed, *(ctypes.c_uint64(0) for _ in scratch)]


def _shared_memory(args: Sequence[KernelArg]) -> tuple[str, str] | None:
    tensors = [arg for arg in args if arg.tensor is not None]
    for i, one in enumerate(tensors):
        for other in tensors[i + 1 :]:
            if one.storage == other.storage and (one.writes or other.writes):
                return one.name, other.name
    return None


def _laid_out(arg: KernelArg, content: torch.Tensor | None) -> torch.Tensor:
    assert arg.tensor is not None
    meta, dtype = arg.tensor, getattr(torch, arg.tensor.dtype)
    offset = meta.offset % 256  # elements: the alignment that the compiler was promised
    last = sum((n - 1) * stride for n, stride in zip(meta.shape, meta.stride, strict=True))
    span = 0 if 0 in meta.shape else last + 1
    storage = torch.zeros(offset + span, dtype=dtype)
    tensor = storage.as_strided(meta.shape, meta.stride, offset)
    return tensor if content is None else tensor.copy_(content.reshape(meta.shape))


def _bytes(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())


def _on_gpu(tensor: torch.Tensor) -> torch.Tensor:
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).cuda()
    return storage.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _launched(launch: KernelLaunch, folder: Path, given: Values) -> str:
    # "" or what the driver, or this replay, does not accept
    ptx = artefact(folder, "ptx").read_text()
    name, threads = _ENTRY.search(ptx), _THREADS.search(ptx)
    if name is None or threads is None:
        return "the PTX names no entry, or not how many threads it wants"
    packed = parameters(ptx, launch, given)
    if isinstance(packed, str):
        return packed
    wanted = artefact(folder, "shared")
    shared = int(wanted.read_text()) if wanted.exists() else 0
    cubin = artefact(folder, "cubin").read_bytes()
    return _launch(cubin, name[1], launch.grid, int(threads[1]), shared, packed)


def _packed(value: torch.Tensor | int | float | bool | None, kind: str) -> Any:
    # None: a value of this kind is not passed so
    bits = kind.lstrip("busf")
    if isinstance(value, torch.Tensor):
        return ctypes.c_uint64(value.data_ptr()) if bits == "64" else None
    if isinstance(value, float) and bits in _FLOATS:
        return _FLOATS[bits](value)
    return _INTEGERS[bits](value) if isinstance(value, int) and bits in _INTEGERS else None


def _launch(
    cubin: bytes, name: str, grid: tuple[int, int, int], threads: int, shared: int, packed: list[Any]
) -> str:
    driver = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    pointers = (ctypes.c_void_p * len(packed))(*(ctypes.addressof(one) for one in packed))
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("cuModuleLoadData", (ctypes.byref(module), cubin)),
        ("cuModuleGetFunction", (ctypes.byref(function), module, name.encode())),
        ("cuFuncSetAttribute", (function, _SHARED_LIMIT, shared)),
        ("cuLaunchKernel", (function, *grid, threads, 1, 1, shared, None, pointers, None)),
    ]
    for called, arguments in calls:
        status = getattr(driver, called)(*arguments)
        if status:
            return f"{called} failed with CUDA error {status}"
    return ""
