"""Accesses of a kernel outside of its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tracing.interpreter.gates import AccessKind, Addresses, has_mask
from tracing.launch.memory.memory_block import AccessedArgument, MemoryBlock
from tracing.model import OutOfBounds
from tracing.upstream.triton.interpreter import program_index
from tracing.views import dense


@dataclass(frozen=True, slots=True)
class OutsideAccesses:
    """Accesses outside of an argument, made by one line of the kernel."""

    argument: str  # from which the address is computed, or if unknown, the nearest one; empty: none
    kind: AccessKind  # an atomic is one of each
    element: int  # the first such access, in elements from the argument's first one
    count: int  # elements that the argument has
    program: tuple[int, int, int]  # the first program that made such an access
    start: int  # the lowest address
    stop: int  # exclusive
    accesses: int  # addresses, over all programs
    inside: bool  # within the argument's storage
    where: str  # "file.py:12" of the kernel; empty if unknown
    masked: bool | None = False  # the access has a mask; None: it is an atomic, of which that is unknown

    @classmethod
    def of(
        cls,
        argument: AccessedArgument | None,
        kind: AccessKind,
        addresses: Addresses,
        size: int,
        inside: bool,
        where: str,
    ) -> OutsideAccesses:
        """Those of the current program to `size` bytes at each address, at least one."""
        element = (int(addresses[0]) - argument.start) // argument.itemsize if argument else 0
        return cls(
            argument=argument.name if argument else "",
            kind=kind,
            element=element,
            count=argument.count if argument else 0,
            program=program_index(),
            start=int(addresses.min()),
            stop=int(addresses.max()) + size,
            accesses=addresses.size,
            inside=inside,
            where=where,
            masked=has_mask(),
        )

    def joined(self, later: OutsideAccesses) -> OutsideAccesses:
        """These and later ones of the same line to the same argument."""
        return replace(
            self,
            start=min(self.start, later.start),
            stop=max(self.stop, later.stop),
            accesses=self.accesses + later.accesses,
        )

    def record(self, launch: int) -> OutOfBounds:
        """The record of these accesses in a run."""
        return OutOfBounds(
            launch, self.argument, self.kind, self.element, self.program,
            self.start, self.stop, self.accesses, self.inside, self.where,
        )  # fmt: skip


class OutOfBoundsError(Exception):
    """A kernel was stopped before it accessed memory outside of its arguments."""

    def __init__(
        self, kernel: str, outside: OutsideAccesses, argument: AccessedArgument | None, accessed: int
    ) -> None:
        """argument -- that the access leaves; accessed -- bytes of the element that was accessed"""
        position = f"program {outside.program}" + (f", {outside.where}" if outside.where else "")
        what = f"memory at {outside.start:#x}, an address outside of all tensors and of no single argument"
        remedy = "check how the pointer is computed"
        if argument is not None:
            what = f"{argument.name}[{outside.element}] of {_elements(argument)}, outside of its storage"
            remedy = _remedy(outside, argument, accessed)
        super().__init__(
            f"{kernel} {outside.kind}s {what} ({position}); {remedy}, "
            "or let the kernel continue with `tracing run --allow-out-of-bounds`"
        )
        self.kernel, self.outside = kernel, outside


def _elements(argument: AccessedArgument) -> str:
    text, stop = f"{argument.count} elements", (argument.stop - argument.start) // argument.itemsize
    return text if dense(argument.meta) else f"{text}, which lie between [0] and [{stop - 1}] in memory"


def _remedy(outside: OutsideAccesses, argument: AccessedArgument, accessed: int) -> str:
    if argument.itemsize != accessed:
        return (
            f"it accesses {accessed} bytes, and an element has {argument.itemsize}: the kernel was compiled "
            "for another dtype, as where the fake implementation of an operator is wrong; mend it"
        )
    if outside.masked is None:
        return "check how the index is computed, and the mask if the atomic has one"
    if outside.masked:
        return "check how the index and the strides are computed, and the mask or shape that limits them"
    return "check how the index is computed" if outside.element < 0 else "mask the access"


def owner_of(every: Addresses, size: int, blocks: Sequence[MemoryBlock]) -> MemoryBlock | None:
    """The block that one access is meant for which leaves it; None: it touches the memory of no argument.

    every  -- the addresses of `size` bytes; where the first of them lies in the memory of an argument decides
    blocks -- that they touch
    """
    first = {int(np.argmax(one.holds(every, size))): one for one in blocks if one.arguments}
    return first[min(first)] if first else None


def nearest(
    addresses: Addresses, size: int, arguments: list[AccessedArgument]
) -> Iterable[tuple[AccessedArgument | None, Addresses]]:
    """The addresses by the argument to which they are nearest; None: there is no argument."""
    if not arguments:
        yield None, addresses
        return
    floating = addresses.astype(np.float64)  # an invalid address may be 2**63 bytes away
    distances = [np.maximum(one.start - (floating + size), floating - one.stop) for one in arguments]
    nearest = np.argmin(distances, axis=0)
    for index in np.unique(nearest):
        yield arguments[index], addresses[nearest == index]
