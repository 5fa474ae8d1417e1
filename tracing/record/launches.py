"""Which kernels were launched, on what, and what each changed.

Every compiled Triton kernel passes through two points: `CompiledKernel.launch_metadata`, called with the
final grid, the stream and all arguments just before the launch, and the launch exit hook after it. A
`LaunchRecorder` stands at both and writes one launch to the run. Launches that only measure time, made
by an autotuner, are left out.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import torch
import triton
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from triton.compiler import CompiledKernel
from triton.runtime.autotuner import Autotuner

from tracing.model import (
    Argument,
    Digest,
    DigestLine,
    Kernel,
    LaunchLine,
    NotCovered,
    Role,
    Scalar,
    Signature,
    TensorMeta,
)
from tracing.record.access import declared_roles
from tracing.record.digest import digest
from tracing.store import RunWriter


@dataclass(frozen=True, slots=True)
class _Started:
    # a launch between its two hooks; `metadata` is held so that its id stays its own
    metadata: object
    index: int
    tensors: Mapping[int, torch.Tensor]
    before: Mapping[int, Digest]


class LaunchRecorder:
    """While entered, every launch of a compiled Triton kernel in this process is written to a run."""

    def __init__(self, writer: RunWriter) -> None:
        self.count = 0
        self._writer = writer
        self._lock = threading.RLock()  # CUDA's backward launches from autograd's own threads
        self._kernels: dict[int, tuple[CompiledKernel, Kernel, Mapping[str, Role]]] = {}
        self._signatures: dict[Signature, int] = {}
        self._storages: dict[int, int] = {}
        self._started: dict[int, _Started] = {}
        self._uncovered: set[NotCovered] = set()
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> LaunchRecorder:
        hook = self._finish  # one object: HookChain.remove compares bound methods by equality
        with contextlib.ExitStack() as stack:
            stack.enter_context(_wrapped(CompiledKernel, "launch_metadata", self._around_metadata))
            stack.enter_context(_wrapped(Autotuner, "_bench", _measuring))
            stack.enter_context(_wrapped(CachingAutotuner, "bench", _measuring))
            triton.knobs.runtime.launch_exit_hook.add(hook)
            stack.callback(triton.knobs.runtime.launch_exit_hook.remove, hook)
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def _around_metadata(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def launch_metadata(kernel: CompiledKernel, grid: Sequence[int], stream: int, *args: Any) -> Any:
            metadata = original(kernel, grid, stream, *args)
            if not getattr(_thread, "measuring", 0):
                self._start(kernel, metadata, grid, stream, args)
            return metadata

        return launch_metadata

    def _start(
        self,
        compiled: CompiledKernel,
        metadata: object,
        grid: Sequence[int],
        stream: int,
        args: Sequence[Any],
    ) -> None:
        with self._lock, torch._C._DisableTorchDispatch(), torch.no_grad():
            kernel, roles = self._kernel(compiled)
            named = dict(zip(_argument_names(compiled, len(args)), args, strict=False))
            passed = [(name, value) for name, value in named.items() if name not in kernel.constants]
            tensors = {i: t for i, (_, value) in enumerate(passed) if (t := tensor_of(value)) is not None}
            signature = Signature(
                id=0,
                kernel=kernel.id,
                grid=(int(grid[0]), int(grid[1]), int(grid[2])),
                phase="backward" if torch._C._current_graph_task_id() != -1 else "forward",
                device=str(next((t.device for t in tensors.values()), "")),
                args=tuple(_argument(name, value, roles) for name, value in passed),
            )
            storages = tuple(self._storage(tensor) for tensor in tensors.values())
            index = self.count
            self.count += 1
            self._writer.append(LaunchLine(index, self._signature(signature), int(stream or 0), storages))
            self._started[id(metadata)] = _Started(metadata, index, tensors, self._digests(tensors))

    def _finish(self, metadata: object) -> None:
        with self._lock, torch._C._DisableTorchDispatch(), torch.no_grad():
            started = self._started.pop(id(metadata), None)
            if started is None:
                return
            after = self._digests(started.tensors)
            changed = {i: d for i, d in after.items() if d != started.before.get(i)}
            self._writer.append(DigestLine(started.index, started.before, changed))

    def _digests(self, tensors: Mapping[int, torch.Tensor]) -> dict[int, Digest]:
        found = {}
        for position, tensor in tensors.items():
            try:
                found[position] = digest(tensor)
            except (RuntimeError, NotImplementedError, TypeError) as error:
                self._not_covered(
                    f"the bits of {type(tensor).__name__} arguments: {str(error).splitlines()[0]}", "none"
                )
        return found

    def _not_covered(self, what: str, setting: str) -> None:
        record = NotCovered(what, setting)
        if record not in self._uncovered:
            self._uncovered.add(record)
            self._writer.append(record)

    def _kernel(self, compiled: CompiledKernel) -> tuple[Kernel, Mapping[str, Role]]:
        known = self._kernels.get(id(compiled))
        if known is None:
            kernel = _describe(compiled, len(self._kernels), self._writer)
            known = self._kernels[id(compiled)] = (compiled, kernel, self._roles(compiled, kernel))
            self._writer.append(kernel)
        return known[1], known[2]

    def _roles(self, compiled: CompiledKernel, kernel: Kernel) -> Mapping[str, Role]:
        try:
            return declared_roles(compiled.asm["ttir"], compiled.src.signature)
        except (KeyError, ValueError) as error:
            self._not_covered(f"what {kernel.name} reads and writes: {error}", "a kernel with TTIR")
            return {}

    def _signature(self, signature: Signature) -> int:
        known = self._signatures.get(signature)
        if known is None:
            known = self._signatures[signature] = len(self._signatures)
            self._writer.append(msgspec.structs.replace(signature, id=known))
        return known

    def _storage(self, tensor: torch.Tensor) -> int:
        return self._storages.setdefault(tensor.untyped_storage().data_ptr(), len(self._storages))


_thread = threading.local()


def _measuring(original: Callable[..., Any]) -> Callable[..., Any]:
    # an autotuner's benchmark launches are not the program's
    def bench(*args: Any, **kwargs: Any) -> Any:
        _thread.measuring = getattr(_thread, "measuring", 0) + 1
        try:
            return original(*args, **kwargs)
        finally:
            _thread.measuring -= 1

    return bench


@contextlib.contextmanager
def _wrapped(
    owner: type, name: str, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(wrapper(original)))
    try:
        yield
    finally:
        setattr(owner, name, original)


def tensor_of(value: object) -> torch.Tensor | None:
    """The tensor behind a kernel argument: itself, or what a descriptor or reinterpretation wraps."""
    if isinstance(value, torch.Tensor):
        return value
    base = getattr(value, "base", None)
    return base if isinstance(base, torch.Tensor) else None


def _argument(name: str, value: object, roles: Mapping[str, Role]) -> Argument:
    tensor = tensor_of(value)
    if tensor is None:
        plain = value is None or isinstance(value, (bool, int, float, str))
        return Argument(name, value=cast(Scalar, value) if plain else repr(value))
    meta = TensorMeta(
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()),
        dtype=str(tensor.dtype).removeprefix("torch."),
        device=str(tensor.device),
        offset=int(tensor.storage_offset()),
    )
    return Argument(name, roles.get(name, "unknown"), meta)


def _argument_names(compiled: CompiledKernel, count: int) -> list[str]:
    # a kernel compiled from IR has no Python function and so no names
    function = getattr(compiled.src, "fn", None)
    return list(function.arg_names) if function is not None else [f"arg{i}" for i in range(count)]


def _describe(compiled: CompiledKernel, number: int, writer: RunWriter) -> Kernel:
    names = _argument_names(compiled, 0)
    constants = getattr(compiled.src, "constants", {})
    function = getattr(compiled.src, "fn", None)
    metadata = compiled.metadata
    return Kernel(
        id=number,
        name=compiled.name,
        hash=compiled.hash,
        target=f"{metadata.target.backend}:{metadata.target.arch}",
        num_warps=metadata.num_warps,
        num_stages=metadata.num_stages,
        num_ctas=metadata.num_ctas,
        constants={_path(names, key): str(value) for key, value in constants.items()},
        stages={stage: writer.blob(compiled.asm[stage]) for stage in compiled.asm},
        source=writer.blob("".join(function.raw_src)) if function is not None else None,
        file=_file(function),
    )


def _path(names: Sequence[str], key: object) -> str:
    # Triton addresses constants by path, (3,) or (3, 0) inside of a tuple argument; before 3.3 by name
    if isinstance(key, tuple):
        return ".".join([names[key[0]], *map(str, key[1:])])
    return str(key)


def _file(function: Any) -> str | None:
    code = getattr(getattr(function, "fn", None), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None
