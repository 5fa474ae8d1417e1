"""The causes of a comparison: why a kernel read other bits in one run than in the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tracing.model import CallSite

WhichRuns: TypeAlias = Literal["", "a", "b", "ab"]


@dataclass(frozen=True, slots=True)
class Writer:
    """A launch that wrote an argument."""

    a: int | None  # index in run a
    b: int | None
    kernel_name: str
    argument: str


@dataclass(frozen=True, slots=True)
class OtherResults:
    """The operator read equal bits in both runs, and wrote other ones."""

    why: Literal["not deterministic", "random", "received"]
    # "random": it drew other random numbers;
    # "received": a collective, and what other ranks gave it was not compared
    calls: tuple[int, int]  # numbers of the two calls


@dataclass(frozen=True, slots=True)
class OtherInput:
    """The operator read other tensors: different launches or calls wrote its argument."""

    a: str  # what wrote it in run a
    b: str


@dataclass(frozen=True, slots=True)
class OtherOrder:
    """The runs call the operator on the same tensors in another order."""


@dataclass(frozen=True, slots=True)
class OtherPoint:
    """The other run calls the operator as often, at another point of the program."""


@dataclass(frozen=True, slots=True)
class MoreCalls:
    """Only one run makes further calls, on a tensor that both wrote with the operator."""

    count: int


@dataclass(frozen=True, slots=True)
class OtherTarget:
    """The same call writes something else in the other run."""

    number: int  # of the call, from 1 on
    what: Literal["tensor", "elements"]  # another tensor, or other elements of this one


OperatorDifference: TypeAlias = OtherResults | OtherInput | OtherOrder | OtherPoint | MoreCalls | OtherTarget


@dataclass(frozen=True, slots=True)
class OperatorCause:
    """An operator outside of Triton wrote the tensor that was read."""

    names: tuple[str, str]  # in run a and in run b; empty: none wrote it there
    arguments: tuple[str, str]  # those that are no tensors
    runs: WhichRuns  # the runs in which it acted differently
    proven: bool  # False: both runs called it alike, so it caused the difference or propagated it
    how: OperatorDifference | None = None  # None: other calls or arguments, or not decided
    through: tuple[str, ...] = ()  # operators that copied it or computed with it, the last one first
    also: tuple[str, ...] = ()  # calls of other operators to which the same applies
    numbers: tuple[int, int] | None = None  # of its two calls, from 1 on, if they differ
    draws: tuple[str, str] | None = None  # earlier draws of random numbers that differ, with their lines
    sites: tuple[CallSite | None, CallSite | None] = (None, None)  # lines that call it in each run

    @property
    def not_deterministic(self) -> bool:
        """True if its results differ although its inputs are equal, and nothing else explains it."""
        return isinstance(self.how, OtherResults) and self.how.why == "not deterministic"

    @property
    def draws_others(self) -> bool:
        """True if it drew other random numbers, from equal inputs."""
        return isinstance(self.how, OtherResults) and self.how.why == "random"

    @property
    def origin(self) -> OperatorCause | None:
        """The line that calls it in one run only, whatever was computed from it; None: another cause."""
        in_one = self.proven and self.runs != "ab" and any(self.sites)
        return replace(self, through=()) if in_one else None


@dataclass(frozen=True, slots=True)
class Host:
    """Memory changed without a launch or an operator: through numpy, a C library, another process."""

    runs: WhichRuns  # the runs in which it changed; empty: at least one of them, unknown which
    writer: Writer | None  # the last launch that wrote it; None: no launch did
    proven: bool = True  # False: no writer was recorded, or it may have changed alike in both runs
    through: tuple[str, ...] = ()
    made: bool = False  # the program made the tensor of its own values, as by torch.tensor
    operator: str = ""  # the operator that wrote it last, with equal bits
    sites: tuple[CallSite | None, CallSite | None] = (None, None)  # lines that made it in each run


@dataclass(frozen=True, slots=True)
class OtherTensor:
    """The program passes another tensor: different launches or calls wrote the memory that was read."""

    a: str  # what wrote it in run a: a launch, an operator, or what the case began with
    b: str
    proven: bool = True  # False: it may be the same tensor, to which another launch or call wrote in one run


@dataclass(frozen=True, slots=True)
class WrittenElsewhere:
    """A launch of both runs wrote the memory that was read in one run, and another tensor in the other."""

    writer: Writer
    runs: WhichRuns  # the runs in which it wrote this tensor
    through: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamCause:
    """The writer's result was equal, but the reader ran on another stream before the write was complete."""

    writer: Writer


@dataclass(frozen=True, slots=True)
class Uninitialised:
    """A launch read memory that was never written, or that another launch left partly unwritten."""

    writer: Writer | None  # the launch that wrote only part of it; None: nothing wrote it
    elements: tuple[int, int] | None = None  # first element and count, if the interpreter recorded them
    through: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Overrun:
    """A launch wrote out of bounds of its argument into the memory that was read."""

    writer: Writer
    runs: WhichRuns
    through: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnknownCause:
    """The writer was not recorded."""

    why: str


Cause: TypeAlias = (
    OperatorCause
    | Host
    | OtherTensor
    | WrittenElsewhere
    | StreamCause
    | Uninitialised
    | Overrun
    | UnknownCause
)
