"""What can differ between two runs, and who is to blame for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.model import KernelLaunch

Kind: TypeAlias = Literal["launch", "input", "output", "missing", "added", "end"]
Key: TypeAlias = tuple[str, ...]
NO_LAUNCH = "no such launch"


@dataclass(frozen=True, slots=True)
class Producer:
    """The launch that last wrote a buffer before it was read."""

    index: int
    kernel_name: str
    argument: str
    outputs: tuple[str, ...]  # all that it may have written
    only_in_a: bool = False  # run b does not have this launch
    changed_in: str = ""  # "a", "b", "ab": the runs in which something outside of Triton wrote it afterwards
    unwritten: bool = False  # the memory held other bits before it, and may not have been wholly written
    other_stream: bool = False  # it ran on another stream than the launch that reads


@dataclass(frozen=True, slots=True)
class Divergence:
    """One difference between two runs."""

    kind: Kind
    rank: int
    index: int  # of the launch in run a, or in run b where a has none
    kernel_name: str
    a: str  # what run a has: digest, or the part of the launch that differs
    b: str
    launch: KernelLaunch  # run a's, or run b's where a has none
    other: KernelLaunch | None = None  # run b's
    argument: str | None = None  # None: the launch itself differs
    position: int | None = None
    producer: Producer | None = None  # of an input; None: no launch before it wrote that buffer
    operator: str | None = None  # that wrote it last, outside of Triton; in run b if none did in a
    may_follow: bool = False  # from an earlier difference, through operators
    may_be_unwritten: bool = False  # an output; the memory held other bits before
    outputs: tuple[str, ...] = ()  # of a launch that differs: what it left differently
    count: int = 1  # launches missing, or added, in a row
    operator_in: str = "ab"  # the runs in which that operator wrote it
    untouched: bool = False  # an output; where it differs it differed before, and the launch changed nothing

    @property
    def only_in_b(self) -> bool:
        """Whether run a does not have this launch."""
        return self.a == NO_LAUNCH

    @property
    def key(self) -> Key:
        """Equal for differences that repeat one another."""
        writer = self.operator or (self.producer.kernel_name if self.producer else "")
        told = (self.a, self.b, *self.outputs) if self.kind == "launch" else ()
        return (self.kind, self.kernel_name, self.argument or "", writer, *told)
