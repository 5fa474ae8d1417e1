"""Record the reads and writes of a launch, byte by byte, while Triton's interpreter executes it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np
import torch

from tracing.interpreter.batch.divergence import OneAtATime
from tracing.interpreter.gates import AccessKind, Addresses, Mask, MemoryOrder, accessed_argument
from tracing.interpreter.guard import Span, outside_of, spans_of, tensors_in_use
from tracing.interpreter.kernel_line import kernel_line
from tracing.launch.memory.happens_before import HappensBefore
from tracing.launch.memory.memory_block import AccessedArgument, MemoryBlock
from tracing.launch.memory.occupied_mask import occupied
from tracing.launch.memory.out_of_bounds import OutOfBoundsError, OutsideAccesses, nearest, owner_of
from tracing.launch.memory.program_order import Conflict, ProgramAccess, ProgramOrder
from tracing.launch.storages import Reach
from tracing.launch.tensors import tensor_meta
from tracing.model import Role
from tracing.upstream.triton.interpreter import program_index
from tracing.views import dense

_Key: TypeAlias = tuple[str, AccessKind, str, bool]


class Accesses:
    """The accesses so far to each tensor argument of a launch.

    Exact: every load and store without the masked-off lanes. An access counts for each argument with
    elements at that address. One outside of them is of the argument from which its address was computed.
    """

    def __init__(self, kernel: str, tensors: Mapping[str, torch.Tensor]) -> None:
        """tensors -- by name, all on the CPU; raises ValueError for another"""
        self.kernel = kernel
        self.thread = threading.get_ident()
        self.reach: Reach | None = None  # where the kernel may follow addresses; None: nowhere
        self.bounded = True  # False: the kernel also has memory of its own, so nothing is outside of it
        self.fatal = False  # an access outside of the arguments' storages raises OutOfBoundsError
        self.reported: list[Callable[[OutsideAccesses], None]] = []  # called before the access happens
        self.ended: list[Callable[[], None]] = []  # called after the kernel has run or raised
        self.interrupted = False  # True: the launch ended early, so its later accesses are unknown
        # between programs, or else between threads, and the line
        self.conflict: tuple[Conflict, str] | None = None
        self.undecided: tuple[Conflict, str] | None = None  # between programs, and the line
        self.before = HappensBefore()
        self._batched = False  # several programs access memory in one call
        self._orders: dict[int, ProgramOrder] = {}  # by address of a block
        self._others: list[Span] | None = None  # storages of all tensors; None: not needed so far
        self._outside: dict[_Key, OutsideAccesses] = {}
        self._blocks = _blocks(tensors)
        self._arguments: dict[str, tuple[AccessedArgument, MemoryBlock]] = {}
        self._tensors: dict[str, AccessedArgument] = {}  # also those without memory
        for name, tensor in tensors.items():
            argument = AccessedArgument.of(name, tensor_meta(tensor), tensor.data_ptr())
            self._tensors[name] = argument
            block = next((one for one in self._blocks if one.start <= argument.start < one.stop), None)
            if block is not None:  # a tensor without memory has no address
                block.arguments.append(argument)
                self._arguments[name] = argument, block
        self._names = list(tensors)

    @property
    def names(self) -> list[str]:
        """The names of the arguments that do not share memory."""
        return self._names

    @property
    def blocks(self) -> list[MemoryBlock]:
        """The memory blocks of the arguments, and those that loaded addresses pointed to."""
        return self._blocks

    @property
    def outside(self) -> list[OutsideAccesses]:
        """Accesses outside of arguments: the first one for each argument, kind and line."""
        return list(self._outside.values())

    def of(self, name: str) -> tuple[AccessedArgument, MemoryBlock] | None:
        """An argument and its memory block; None: it has no elements."""
        return self._arguments.get(name)

    def role(self, name: str) -> Role:
        """The accesses to the memory of one argument: "in", "out", "in_out" or "none"."""
        known = self._arguments.get(name)
        if known is None:
            return "none"
        argument, block = known
        read, written = block.read(argument).any(), block.written(argument).any()
        if read:
            return "in_out" if written else "in"
        return "out" if written else "none"

    def note(
        self, kinds: Sequence[AccessKind], addresses: Addresses, size: int, order: MemoryOrder = "plain"
    ) -> Mask | None:
        """Record one load or store of `size` bytes at each address, which is about to happen.

        kinds     -- of an atomic both
        addresses -- [lanes], at least one
        order     -- that it guarantees among programs

        Returns [lanes] True for addresses outside of every storage, which must not be accessed; None: there
        is none. Raises OutOfBoundsError if accesses out of bounds are not allowed.
        """
        if order != "plain" and not self._batched:
            self.before.synchronise(self.before.number(program_index()), addresses, order)
        access: ProgramAccess = "atomic" if len(kinds) > 1 else "store" if "store" in kinds else "load"
        if order != "plain" and access == "load":
            access = "volatile load"
        low, high = int(addresses.min()), int(addresses.max()) + size
        for block in self._blocks:
            if block.start <= low and high <= block.stop:
                if self.bounded and block.arguments and (owner := self._other_owner(block)):
                    self._report(kinds, addresses, size, None, owner)
                elif not block.covers(low, high):
                    self._report_strange(block, kinds, addresses, size)
                self._note(block, kinds, addresses, size, access)
                return None
        return self._scattered(kinds, addresses, size, access)

    @contextmanager
    def batches(self) -> Iterator[None]:
        """While active, `note` receives accesses of several programs, and raises OneAtATime to report one."""
        if self._outside or self._orders or any(block.accessed for block in self._blocks):
            raise OneAtATime("is one of several launches that are watched as one")
        self._batched = True
        try:
            yield
        except BaseException:
            for block in self._blocks:
                block.forget()
            raise
        finally:
            self._batched = False

    def _scattered(
        self, kinds: Sequence[AccessKind], addresses: Addresses, size: int, access: ProgramAccess
    ) -> Mask | None:
        # in several blocks, or in none
        if self._batched:
            raise OneAtATime("accesses several blocks of memory")
        every, refused = addresses, None
        parts: list[tuple[MemoryBlock, Addresses]] = []
        for block in self._blocks:
            inside = block.holds(addresses, size)
            if inside.any():
                parts.append((block, addresses[inside]))
                addresses = addresses[~inside]
        if self.reach is not None and addresses.size:
            addresses = self._followed(self.reach, addresses, size, parts)
        if self.bounded:
            owner = self._owner(every, size, [block for block, _ in parts])
            others = [part for block, part in parts if block.arguments and owner and block is not owner]
            if addresses.size or (others and accessed_argument() is not None):
                outside = every[np.isin(every, np.concatenate([addresses, *others]))]
                self._report(kinds, outside, size, None, owner)
            if addresses.size:
                refused = self._refused(every, addresses, size)
        for block, part in parts:
            self._report_strange(block, kinds, part, size)
            self._note(block, kinds, part, size, access)
        return refused

    def _owner(self, every: Addresses, size: int, blocks: Sequence[MemoryBlock]) -> MemoryBlock | None:
        # the block that an access is meant for, of which these blocks contain a part; None: unknown
        argument = accessed_argument()
        if argument is None:
            return owner_of(every, size, blocks)
        known = self._arguments.get(argument)
        return known[1] if known else None

    def _other_owner(self, block: MemoryBlock) -> MemoryBlock | None:
        # of the argument from which the addresses in this block are computed; None: its own, or unknown
        known = self._arguments.get(accessed_argument() or "")
        return known[1] if known and known[1] is not block else None

    def _refused(self, every: Addresses, outside: Addresses, size: int) -> Mask | None:
        # a GPU accesses the storage of another tensor; the process would not survive other memory
        if self._others is None:
            self._others = spans_of(tensors_in_use())
        refused = np.isin(every, outside[outside_of(self._others, outside, size)])
        return refused if refused.any() else None

    def _note(
        self,
        block: MemoryBlock,
        kinds: Sequence[AccessKind],
        addresses: Addresses,
        size: int,
        access: ProgramAccess,
    ) -> None:
        for kind in kinds:
            block.note(kind, addresses, size)
        if self._batched:  # programs are known to be independent
            if "store" in kinds and block.shifted and block.loaded:
                raise OneAtATime("reads and writes arguments that share memory")
            return
        known = self.conflict
        if (known is not None and not known[0].of_threads) or not block.arguments:
            return
        order = self._orders.get(block.start)
        if order is None:
            order = self._orders[block.start] = block.program_order(self.before)
        conflict = order.note(access, addresses, size, self.before.number(program_index()))
        if conflict is not None:
            self._keep(conflict)

    def _keep(self, conflict: Conflict) -> None:
        located = conflict, conflict.where or kernel_line()
        if not conflict.decided:
            self.undecided = self.undecided or located
        elif self.conflict is None or (self.conflict[0].of_threads and not conflict.of_threads):
            self.conflict = located

    def forget_listeners(self) -> None:
        """Drop what is called at accesses and at the end: it keeps the launch, and so its tensors."""
        self.reported.clear()
        self.ended.clear()

    def end_programs(self) -> None:
        """Note that the last program has ended; call it before the memory is changed."""
        for order in self._orders.values():
            if (conflict := order.end_program()) is not None:
                self._keep(conflict)

    def names_at(self, address: int) -> list[str]:
        """The elements at an address: `x[3]`, of each argument that has one there."""
        return [
            f"{one.name}[{(address - one.start) // one.itemsize}]"
            for one, _ in self._arguments.values()
            if one.start <= address < one.stop and _has(one, address)
        ]

    def _followed(
        self, reach: Reach, addresses: Addresses, size: int, parts: list[tuple[MemoryBlock, Addresses]]
    ) -> Addresses:
        # returns the addresses outside of all known memory
        unknown = []
        while addresses.size:
            known = reach(int(addresses[0]))
            block = MemoryBlock(*known) if known is not None else None
            if block is None or not block.holds(addresses[:1], size)[0]:
                unknown.append(addresses[0])
                addresses = addresses[1:]
            else:
                self._blocks.append(block)
                inside = block.holds(addresses, size)
                parts.append((block, addresses[inside]))
                addresses = addresses[~inside]
        return np.array(unknown, np.int64)

    def _report_strange(
        self, block: MemoryBlock, kinds: Sequence[AccessKind], addresses: Addresses, size: int
    ) -> None:
        if block.arguments:  # otherwise the kernel reached it through an address
            strange = block.strange(addresses, size)
            if strange.any():
                self._report(kinds, addresses[strange], size, block)

    def _report(
        self,
        kinds: Sequence[AccessKind],
        addresses: Addresses,
        size: int,
        block: MemoryBlock | None,
        owner: MemoryBlock | None = None,
    ) -> None:
        # in the block, or outside of all of them; owner: the one that the access is meant for, if it is known
        if self._batched:
            raise OneAtATime("accesses memory outside of its arguments")
        where = kernel_line()
        for argument, part in self._of_arguments(addresses, size, block, owner):
            for kind in kinds:
                name = argument.name if argument else ""
                key = (name, kind, where, block is not None)
                new = OutsideAccesses.of(argument, kind, part, size, block is not None, where)
                known = self._outside.get(key)
                self._outside[key] = known.joined(new) if known else new
                for reported in self.reported if known is None else ():
                    reported(new)
        if self.fatal and block is None:
            raise OutOfBoundsError(self.kernel, self._outside[key], argument, size)

    def _of_arguments(
        self, addresses: Addresses, size: int, block: MemoryBlock | None, owner: MemoryBlock | None
    ) -> Iterable[tuple[AccessedArgument | None, Addresses]]:
        name = accessed_argument()
        argument = self._tensors.get(name or "")
        if name is not None and (block is None or argument in block.arguments):
            return [(argument, addresses)]
        within = block or owner
        candidates = [one for one, its_block in self._arguments.values() if within in (None, its_block)]
        return nearest(addresses, size, candidates)


def _blocks(tensors: Mapping[str, torch.Tensor]) -> list[MemoryBlock]:
    # storages of their own may share memory, as where two tensors were made of one NumPy array
    ranges: list[tuple[int, int, list[object]]] = []
    for name, tensor in tensors.items():
        if tensor.device.type != "cpu":
            raise ValueError(f"{name} is on {tensor.device}: the interpreter works on a copy in CPU memory")
        storage = tensor.untyped_storage()
        if storage.nbytes():
            ranges.append((storage.data_ptr(), storage.data_ptr() + storage.nbytes(), [storage]))
    merged: list[tuple[int, int, list[object]]] = []
    for start, stop, owners in sorted(ranges, key=lambda one: one[:2]):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]), [*merged[-1][2], *owners])
        else:
            merged.append((start, stop, owners))
    return [MemoryBlock(*one) for one in merged]


def _has(argument: AccessedArgument, address: int) -> bool:
    return dense(argument.meta) or bool(occupied(argument.meta)[address - argument.start])
