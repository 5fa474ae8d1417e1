"""Prevent a kernel from accessing memory outside of its arguments.

On a GPU such an access may go unnoticed or end the kernel; in the interpreter it would crash the process.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch

from tracing.interpreter.gates import AccessKind, Addresses, Mask, MemoryOrder, is_watched, watched
from tracing.upstream.patch import Method
from tracing.upstream.torch.dynamo import untraced
from tracing.upstream.torch.tensor_subclasses import has_storage
from tracing.upstream.triton.interpreter import InterpretedFunction, around_launches

Span: TypeAlias = tuple[int, int]  # addresses START:STOP


class Guard:
    """Refuses accesses outside of the storages of a launch's tensors."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.thread = threading.get_ident()
        self._spans = list(spans)
        self._looked = False

    def note(
        self, kinds: Sequence[AccessKind], addresses: Addresses, size: int, order: MemoryOrder
    ) -> Mask | None:
        """[lanes] True for addresses outside of every storage; None: there is none."""
        low, high = int(addresses.min()), int(addresses.max()) + size
        if any(start <= low and high <= stop for start, stop in self._spans):
            return None
        refused = outside_of(self._spans, addresses, size)
        if refused.any() and not self._looked:  # an address may have come through memory, or as an integer
            self._looked = True
            self._spans += spans_of(tensors_in_use())
            refused = outside_of(self._spans, addresses, size)
        return refused if refused.any() else None

    @contextmanager
    def batches(self) -> Iterator[None]:
        """Nothing is remembered between accesses, whichever programs make them."""
        yield


@contextmanager
def guarded(arguments: Sequence[object]) -> Iterator[None]:
    """While active, a launch on this thread accesses only memory of its arguments and of tensors in use.

    A store to other memory does nothing, and a load from it gives zeros. If watchers watch this thread, they
    decide instead.
    """
    if is_watched():
        yield
        return
    with watched([Guard(spans_of(tensors_of(arguments)))]):
        yield


@contextmanager
def functions_guarded() -> Iterator[None]:
    """While active, launches of functions decorated under TRITON_INTERPRET=1 are guarded."""
    with around_launches(_guarded):
        yield


def _guarded(original: Method) -> Method:
    def run(function: InterpretedFunction, *args: Any, **kwargs: Any) -> Any:
        with guarded([*args, *kwargs.values()]):
            return original(function, *args, **kwargs)

    # Dynamo would trace into it
    return untraced(run)


def tensors_in_use() -> Iterator[torch.Tensor]:
    """All tensors with host memory that Python holds; iterates over all objects of the garbage collector."""
    kinds = {torch.Tensor, torch.nn.Parameter}
    for tensor in [tracked for tracked in gc.get_objects() if type(tracked) in kinds]:
        # a tensor inside of torch.vmap has no storage of its own
        if tensor.device.type == "cpu" and has_storage(tensor) and _has_memory(tensor):
            yield tensor


def _has_memory(tensor: torch.Tensor) -> bool:
    try:
        tensor.untyped_storage().data_ptr()
    except RuntimeError:  # a wrapper of torch.func.functionalize, which an error may keep alive
        return False
    return True


def spans_of(tensors: Iterable[torch.Tensor]) -> list[Span]:
    """The addresses start:stop of the storages of tensors, sorted."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    return sorted({(one.data_ptr(), one.data_ptr() + one.nbytes()) for one in storages if one.nbytes()})


def outside_of(spans: Iterable[Span], addresses: Addresses, size: int) -> Mask:
    """[lanes] True where not all of `size` bytes at an address lie in one of the spans."""
    inside = np.zeros(addresses.shape, np.bool_)
    for start, stop in spans:
        inside |= (addresses >= start) & (addresses <= stop - size)
    return ~inside


def tensors_of(values: Iterable[object]) -> Iterator[torch.Tensor]:
    """The tensors in host memory among the arguments of a launch."""
    for value in values:
        if isinstance(value, tuple):
            yield from tensors_of(value)
            continue
        tensor: Any = value
        while hasattr(tensor, "base"):  # a descriptor, perhaps of a tensor with another dtype
            tensor = tensor.base
        if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu":
            yield tensor
