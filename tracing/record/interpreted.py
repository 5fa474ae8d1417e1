"""What a launch executed by Triton's interpreter read and wrote, and where it left its arguments.

The answer is exact for the launch that ran: the addresses of every load and store, without the masked-off
lanes, are compared with the memory of the arguments. "in" means that some byte was read before this launch
had written it, so an output buffer that a kernel fills and then reads again is "out".

All memory operations of the interpreter (masked or not, block pointers, tensor descriptors with gather and
scatter, atomics) end in four native functions, here watched on their way in. The only other way to memory is
our own atomic addition of bfloat16. What cannot be seen:

- the gaps of a strided argument: its memory is all from its first element to the end of its last;
- which argument an address was made from: it counts for every argument that it lies in, so a kernel that
  runs over the end of one into another is not out of bounds;
- a compare-and-swap that did not swap: it counts as a write.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
import triton
from triton._C.libtriton import interpreter as native
from triton.runtime import interpreter as upstream

from tracing import interpreter
from tracing.interpreter.builder import Builder
from tracing.model import Role
from tracing.patch import replaced

Kind: TypeAlias = Literal["load", "store"]
Addresses: TypeAlias = npt.NDArray[np.int64]  # one for each lane that takes part; signed, to subtract freely


@dataclass(frozen=True, slots=True)
class OutOfBounds:
    """Accesses outside of every argument, made by one line of the kernel."""

    argument: str  # the nearest one
    kind: Kind  # an atomic is one of each
    program: tuple[int, int, int]  # the first that did it
    byte_offset: int  # of the first address, from the argument's first element
    count: int  # addresses, over all programs
    where: str  # "file.py:12" of the kernel, "" if unknown


class Accesses:
    """What happened to each of the tensors so far."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self.thread = threading.get_ident()
        self._arguments = {name: _Argument(name, tensor) for name, tensor in tensors.items()}
        self._outside: dict[tuple[str, Kind, str], OutOfBounds] = {}

    @property
    def names(self) -> list[str]:
        """The arguments that are told apart."""
        return list(self._arguments)

    @property
    def out_of_bounds(self) -> list[OutOfBounds]:
        """One for each argument, kind and line, in the order of their first access."""
        return list(self._outside.values())

    def role(self, name: str) -> Role:
        """What was done to the memory of one argument: "in", "out", "in_out" or "none".

        Raises KeyError if no tensor of that name was given.
        """
        argument = self._arguments[name]
        if argument.read:
            return "in_out" if argument.written else "in"
        return "out" if argument.written else "none"

    def note(self, kind: Kind, addresses: Addresses, size: int) -> None:
        """Take account of one load or store of `size` bytes at each address, which is about to happen.

        addresses -- [lanes], at least one
        """
        low, high = int(addresses.min()), int(addresses.max()) + size
        near = [a for a in self._arguments.values() if low < a.end and a.start < high]
        around = [a for a in near if a.start <= low and high <= a.end]
        for argument in near:
            argument.note(kind, addresses if argument in around else argument.touched(addresses, size), size)
        if not around:
            inside = np.zeros(addresses.shape, dtype=bool)
            for argument in near:
                inside |= (addresses >= argument.start) & (addresses <= argument.end - size)
            self._report(kind, addresses[~inside], size)

    def _report(self, kind: Kind, outside: Addresses, size: int) -> None:
        if not outside.size or not self._arguments:
            return
        arguments, where = list(self._arguments.values()), _where()
        nearest = np.argmin([argument.distance(outside, size) for argument in arguments], axis=0)
        for index in np.unique(nearest):
            argument, addresses = arguments[index], outside[nearest == index]
            known = self._outside.get((argument.name, kind, where)) or OutOfBounds(
                argument.name, kind, _program(), int(addresses[0]) - argument.start, 0, where
            )
            self._outside[argument.name, kind, where] = replace(known, count=known.count + addresses.size)


class _Argument:
    # An address is in it from its first element to the end of its last.

    def __init__(self, name: str, tensor: torch.Tensor) -> None:
        if tensor.device.type != "cpu":
            raise ValueError(f"{name} is on {tensor.device}: the interpreter works on a copy in CPU memory")
        last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
        self.name = name
        self.start = tensor.data_ptr()
        self.end = self.start + (last + 1) * tensor.element_size() if tensor.numel() else self.start
        self.read = self.written = False
        self._bytes_written: npt.NDArray[np.bool_] | None = None

    def touched(self, addresses: Addresses, size: int) -> Addresses:
        # an access that is partly outside touches the argument nevertheless
        return addresses[(addresses > self.start - size) & (addresses < self.end)]

    def distance(self, addresses: Addresses, size: int) -> npt.NDArray[np.float64]:
        floating = addresses.astype(np.float64)  # a wild address may be 2**63 away
        return np.maximum(self.start - (floating + size), floating - self.end)

    def note(self, kind: Kind, addresses: Addresses, size: int) -> None:
        if not addresses.size:
            return
        self.written |= kind == "store"
        if self.read:  # whatever is read from now on changes nothing, so what was written is not asked again
            return
        if kind == "store":
            self._write(addresses, size)
        else:
            self.read = not self._wrote(addresses, size)

    def _write(self, addresses: Addresses, size: int) -> None:
        if self._bytes_written is None:
            # `size` is 8 at most. The bytes around the argument are nobody's old content: as if written.
            self._bytes_written = np.zeros(self.end - self.start + 16, dtype=bool)
            self._bytes_written[:8] = self._bytes_written[-8:] = True
        offsets = addresses - (self.start - 8)
        for byte in range(size):
            self._bytes_written[offsets + byte] = True

    def _wrote(self, addresses: Addresses, size: int) -> bool:
        if self._bytes_written is None:
            return False
        offsets = addresses - (self.start - 8)
        return all(self._bytes_written[offsets + byte].all() for byte in range(size))


@contextmanager
def tracked(tensors: Mapping[str, torch.Tensor]) -> Iterator[Accesses]:
    """While active, every load and store that Triton's interpreter executes on this thread is attributed.

    tensors -- the arguments of one launch, by name: on the CPU, any shape, stride and dtype.
               Of a TensorDescriptor its base

    An access outside of all tensors is recorded, and then happens: it may end the process. All launches
    while active count as one; to know what each of them did, track it alone. May be nested: each level
    judges every access by its own tensors.

    Cost: some 10 µs an access. Memory: a byte for each byte of the tensors written before they are read.

    Raises ValueError for a tensor that is not on the CPU.
    """
    with torch._C.DisableTorchFunction():
        accesses = Accesses(tensors)
    with _LOCK:
        if not _TRACKING:
            _PATCHES.enter_context(_watched())
        _TRACKING.append(accesses)
    try:
        yield accesses
    finally:
        with _LOCK:
            _TRACKING.remove(accesses)
            if not _TRACKING:
                _PATCHES.close()


# ---- on the way to memory ----


class _Gate(NamedTuple):
    """A function through which the interpreter reaches memory, and what its arguments say."""

    owner: Any
    name: str
    kinds: tuple[Kind, ...]
    describe: Callable[..., tuple[Any, Any, Any]]  # addresses, mask, dtype of one element


_ATOMIC: tuple[Kind, ...] = ("load", "store")
_GATES = (
    _Gate(native, "load", ("load",), lambda pointers, mask, other, dtype: (pointers, mask, dtype)),
    _Gate(native, "store", ("store",), lambda pointers, value, mask: (pointers, mask, value.dtype)),
    _Gate(native, "atomic_rmw", _ATOMIC, lambda op, pointers, value, mask, _: (pointers, mask, value.dtype)),
    _Gate(native, "atomic_cas", _ATOMIC, lambda pointers, old, new, _: (pointers, True, new.dtype)),
    _Gate(  # through ctypes
        Builder,
        "atomic_add_bf16",
        _ATOMIC,
        lambda builder, pointer, value, mask: (pointer.data, mask.data, value.data.dtype),
    ),
)
_LOCK = threading.Lock()
_TRACKING: list[Accesses] = []  # of all threads: the gates are the process's
_PATCHES = ExitStack()


@contextmanager
def _watched() -> Iterator[None]:
    # Upstream's builder looks its functions up in the module at each call, and so finds these.
    with ExitStack() as stack:
        for gate in _GATES:
            stack.enter_context(replaced(gate.owner, gate.name, _noting(gate)))
        yield


def _noting(gate: _Gate) -> Callable[..., Any]:
    function = getattr(gate.owner, gate.name)

    def noting(*arguments: Any) -> Any:
        pointers, mask, dtype = gate.describe(*arguments)
        addresses = np.asarray(pointers, dtype=np.uint64).reshape(-1).view(np.int64)
        taking_part = np.asarray(mask, dtype=bool).reshape(-1)
        if not taking_part.all():
            addresses = addresses[np.broadcast_to(taking_part, addresses.shape)]
        if addresses.size:
            _note(gate.kinds, addresses, dtype.itemsize)
        return function(*arguments)

    return noting


def _note(kinds: tuple[Kind, ...], addresses: Addresses, size: int) -> None:
    thread = threading.get_ident()
    for accesses in tuple(_TRACKING):  # other threads may enter and leave
        if accesses.thread == thread:
            for kind in kinds:
                accesses.note(kind, addresses, size)


# ---- the place of an access ----

_NOT_KERNELS = (*(f"{folder}{os.sep}" for folder in (*triton.__path__, *interpreter.__path__)), __file__)


def _program() -> tuple[int, int, int]:
    # the virtual GPU puts a builder of its own here while it executes
    x, y, z = upstream.interpreter_builder.grid_idx
    return x, y, z


def _where() -> str:
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_NOT_KERNELS):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
