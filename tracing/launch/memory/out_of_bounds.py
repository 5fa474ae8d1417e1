"""Accesses of a kernel outside of its arguments."""

from __future__ import annotations

from dataclasses import dataclass

from tracing.interpreter.gates import AccessKind
from tracing.model import OutOfBounds


@dataclass(frozen=True, slots=True)
class OutsideAccesses:
    """Accesses outside of an argument, made by one line of the kernel."""

    argument: str  # the nearest one; empty: the kernel has no tensor
    kind: AccessKind  # an atomic is one of each
    element: int  # the first such access, in elements from the argument's first one
    count: int  # elements that the argument has
    program: tuple[int, int, int]  # the first program that made such an access
    start: int  # the lowest address
    stop: int  # exclusive
    accesses: int  # addresses, over all programs
    inside: bool  # within the argument's storage
    where: str  # "file.py:12" of the kernel; empty if unknown

    def record(self, launch: int) -> OutOfBounds:
        """The record of these accesses in a run."""
        return OutOfBounds(
            launch, self.argument, self.kind, self.element, self.program,
            self.start, self.stop, self.accesses, self.inside, self.where,
        )  # fmt: skip


class OutOfBoundsError(Exception):
    """A kernel was stopped before it accessed memory outside of its arguments."""

    def __init__(self, kernel: str, outside: OutsideAccesses, element: int, accessed: int) -> None:
        """element, accessed -- bytes of an element of the argument, and of the element that was accessed."""
        position = f"program {outside.program}" + (f", {outside.where}" if outside.where else "")
        what = f"{outside.kind}s {outside.argument}[{outside.element}] of {outside.count} elements"
        if not outside.argument:
            what = f"{outside.kind}s memory, and has no tensor"
        remedy = "check how the index is computed" if outside.element < 0 else "mask the access"
        if outside.argument and element != accessed:
            remedy = (
                f"it accesses {accessed} bytes, and an element has {element}: the kernel was compiled for "
                "another dtype, as where the fake implementation of an operator is wrong; mend it"
            )
        super().__init__(
            f"{kernel} {what}, outside of its storage ({position}); {remedy}, "
            "or let the kernel continue with `tracing run --allow-out-of-bounds`"
        )
        self.kernel, self.outside = kernel, outside
