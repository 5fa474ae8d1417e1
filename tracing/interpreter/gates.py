"""Intercept every load and store of Triton's interpreter.

All memory operations of the interpreter (masked or not, block pointers, tensor descriptors with gather and
scatter, atomics) end in four native functions, whose calls are intercepted here. The only other access to
memory is this project's atomic addition of bfloat16. A failed compare-and-swap counts as a write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tracing.interpreter import waiting
from tracing.interpreter.builder import BUILDER, DeviceBuilder
from tracing.interpreter.pointers import argument_of
from tracing.upstream.patch import replaced
from tracing.upstream.triton.interpreter import TensorHandle, native_interpreter

AccessKind: TypeAlias = Literal["load", "store"]
Addresses: TypeAlias = npt.NDArray[np.int64]  # one for each lane that takes part; signed, to subtract freely
Mask: TypeAlias = npt.NDArray[np.bool_]
MemoryOrder: TypeAlias = Literal["plain", "relaxed", "acquire", "release", "acq_rel"]  # plain: no atomic


class Watcher(Protocol):
    """Receives the accesses of one thread before they happen."""

    thread: int

    def note(
        self, kinds: Sequence[AccessKind], addresses: Addresses, size: int, order: MemoryOrder
    ) -> Mask | None:
        """`size` bytes at each address are about to be accessed.

        kinds     -- of an atomic both
        addresses -- [lanes], at least one
        order     -- among programs; that of a volatile load is "acquire"

        Returns [lanes] True for each lane that must not access memory: it loads zero and stores nothing. Or
        None: every lane may.
        """

    def batches(self) -> AbstractContextManager[None]:
        """While active, one call of `note` announces the accesses of several programs.

        None of them accesses what another one writes. `note` raises OneAtATime instead of reporting anything.
        After an exception the watcher forgets what was noted: the launch starts over.
        """


@contextmanager
def watched(watchers: Sequence[Watcher]) -> Iterator[None]:
    """While active, every load and store that Triton's interpreter executes on a watcher's thread is noted.

    All launches while active count as one. It nests: outer watchers see every access, too.
    """
    with _LOCK:
        if not _WATCHERS:
            _PATCHES.enter_context(_patched())
        _WATCHERS.extend(watchers)
    try:
        yield
    finally:
        with _LOCK:
            for one in watchers:
                _WATCHERS.remove(one)
            if not _WATCHERS:
                _PATCHES.close()


def is_watched() -> bool:
    """True if a watcher watches this thread."""
    thread = threading.get_ident()
    return any(one.thread == thread for one in tuple(_WATCHERS))


@contextmanager
def batches_noted() -> Iterator[None]:
    """While active, the watchers of this thread receive the accesses of several programs at once."""
    thread = threading.get_ident()
    with ExitStack() as stack:
        for one in tuple(_WATCHERS):
            if one.thread == thread:
                stack.enter_context(one.batches())
        yield


def accessed_argument() -> str | None:
    """The argument from which the addresses of the current access are computed.

    Empty: none, or several. None: unknown, because a builder of Triton's own executes the access.
    """
    return None if BUILDER.accessed is None else argument_of(BUILDER.accessed)


def has_mask() -> bool | None:
    """True if the current load or store has a mask; of an atomic None: Triton gives each one."""
    return BUILDER.masked


class _Gate(NamedTuple):
    """A function through which the interpreter reaches memory, and what its arguments say."""

    owner: Any
    name: str
    kinds: tuple[AccessKind, ...]
    describe: Callable[..., tuple[Any, Any, Any, Any]]  # addresses, mask, dtype of one element, order
    allow: Callable[..., Any]  # the function, and [lanes] that may take part, in the shape of the addresses


def _allowed_cas(function: Any, allowed: Mask, pointers: Any, old: Any, new: Any, order: Any) -> Any:
    loaded = np.zeros_like(new)
    loaded[allowed] = function(pointers[allowed], old[allowed], new[allowed], order)
    return loaded


def _allowed_bf16(
    function: Any, allowed: Mask, builder: Any, pointer: Any, value: Any, mask: Any, order: Any
) -> Any:
    chosen = TensorHandle(np.broadcast_to(mask.data, allowed.shape) & allowed, mask.dtype)
    return function(builder, pointer, value, chosen, order)


def _allowed_load(function: Any, allowed: Mask, pointers: Any, mask: Any, other: Any, dtype: Any) -> Any:
    loaded = np.asarray(function(pointers, mask & allowed, other, dtype))
    outside = np.frombuffer(bytes([BUILDER.outside_byte]) * loaded.itemsize, loaded.dtype)
    return np.where(mask & ~allowed, outside[0], loaded)


_ATOMIC: tuple[AccessKind, ...] = ("load", "store")
_ORDERS: dict[str, MemoryOrder] = {
    "RELAXED": "relaxed",
    "ACQUIRE": "acquire",
    "RELEASE": "release",
    "ACQUIRE_RELEASE": "acq_rel",
}
_GATES = (
    _Gate(
        native_interpreter,
        "load",
        ("load",),
        lambda pointers, mask, other, dtype: (pointers, mask, dtype, BUILDER.order),
        _allowed_load,
    ),
    _Gate(
        native_interpreter,
        "store",
        ("store",),
        lambda pointers, value, mask: (pointers, mask, value.dtype, BUILDER.order),
        lambda function, allowed, pointers, value, mask: function(pointers, value, mask & allowed),
    ),
    _Gate(
        native_interpreter,
        "atomic_rmw",
        _ATOMIC,
        lambda operation, pointers, value, mask, order: (pointers, mask, value.dtype, _ORDERS[order.name]),
        lambda function, allowed, operation, pointers, value, mask, order: function(
            operation, pointers, value, mask & allowed, order
        ),
    ),
    _Gate(
        native_interpreter,
        "atomic_cas",
        _ATOMIC,
        lambda pointers, old, new, order: (pointers, True, new.dtype, _ORDERS[order.name]),
        _allowed_cas,
    ),
    _Gate(  # through ctypes
        DeviceBuilder,
        "atomic_add_bf16",
        _ATOMIC,
        lambda _, pointer, old, mask, order: (pointer.data, mask.data, old.data.dtype, _ORDERS[order.name]),
        _allowed_bf16,
    ),
)
_LOAD = native_interpreter.load  # the function itself, which no watcher is notified of
_LOCK = threading.Lock()
_WATCHERS: list[Watcher] = []  # of all threads: the gates are the process's
_PATCHES = ExitStack()


@contextmanager
def _patched() -> Iterator[None]:
    # Upstream's builder looks its functions up in the module at each call, and so finds these.
    with ExitStack() as stack:
        for gate in _GATES:
            stack.enter_context(replaced(gate.owner, gate.name, _noting(gate)))
        yield


def _noting(gate: _Gate) -> Callable[..., Any]:
    function = getattr(gate.owner, gate.name)

    def noting(*arguments: Any) -> Any:
        pointers, mask, dtype, order = gate.describe(*arguments)
        lanes = np.asarray(pointers, dtype=np.uint64)
        addresses = lanes.reshape(-1).view(np.int64)
        taking_part = np.asarray(mask, dtype=bool).reshape(-1)
        if not taking_part.all():
            taking_part = np.broadcast_to(taking_part, addresses.shape)
            addresses = addresses[taking_part]
        refused = noted(gate.kinds, addresses, dtype.itemsize, order) if addresses.size else None
        if refused is None:
            result = function(*arguments)
        else:
            allowed = np.ones(lanes.size, np.bool_)
            allowed[np.flatnonzero(np.broadcast_to(taking_part, allowed.shape))[refused]] = False
            result = gate.allow(function, allowed.reshape(lanes.shape), *arguments)
        if gate.kinds is _ATOMIC and addresses.size:
            before = np.asarray(result.data if isinstance(result, TensorHandle) else result).reshape(-1)
            if refused is None and _unchanged(addresses, before[np.broadcast_to(taking_part, lanes.size)]):
                waiting.loaded(int(addresses[0]))
            else:
                waiting.changed()
        return result

    return noting


def _unchanged(addresses: Addresses, before: npt.NDArray[Any]) -> bool:
    # before -- what an atomic returned
    everything = np.ones(addresses.shape, np.bool_)
    after = _LOAD(addresses.view(np.uint64), everything, before, before.dtype)
    return bool(after.tobytes() == before.tobytes())


def noted(
    kinds: tuple[AccessKind, ...], addresses: Addresses, size: int, order: MemoryOrder = "plain"
) -> Mask | None:
    """Announce an access to the watchers of this thread; as Watcher.note."""
    if kinds == ("load",):
        waiting.loaded(int(addresses[0]))
    elif kinds == ("store",):
        waiting.changed()
    thread, refused = threading.get_ident(), None
    for watcher in tuple(_WATCHERS):  # other threads may enter and leave
        if watcher.thread == thread:
            one = watcher.note(kinds, addresses, size, order)
            if one is not None:
                refused = one if refused is None else refused | one
    return refused
