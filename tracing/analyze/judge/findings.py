"""The records of what a judgement finds: the verdict on a launch, and results that are off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.analyze.graphs.changing_passes import ChangingPass, EarlierPass
from tracing.model.first_names import first_names
from tracing.store.graph_file import PythonLine

LaunchVerdict: TypeAlias = Literal["right", "off", "inputs wrong", "no reference"]

# causes
BEFORE_INDUCTOR = "a step before Inductor's post-grad passes"
PASSES = "Inductor's graph passes"
GENERATED = "Inductor's generated code"


@dataclass(frozen=True, slots=True)
class WrongElements:
    """The wrong elements of one tensor."""

    name: str  # name of the argument, "out_ptr0", or of the result, "output 0"
    buffer: str  # as the generated code names it
    node: str  # of the graph, whose value it should hold
    count: int  # elements whose distance from the reference rounding does not explain
    of: int
    index: tuple[int, ...]  # of the worst
    value: float | complex  # of the worst; an int or a bool if the tensor holds these
    reference: float | complex
    roundings: float  # distance of the worst from the reference; inf: no rounding explains it
    limit: float  # the greatest distance that rounding explains, in roundings
    dtype: str = ""  # if it differs from the node's: "int64, not uint8"
    mean: float = 0.0  # distance of all elements from the reference, in roundings
    typical: float = 0.0  # the greatest mean that rounding explains

    @property
    def explained(self) -> float | None:
        """The distance from the reference that rounding explains; None: no distance is explained."""
        if isinstance(self.value, int) or not 0 < self.roundings < math.inf:
            return None
        return abs(self.value - self.reference) * self.limit / self.roundings


@dataclass(frozen=True, slots=True)
class RoundedOtherwise:
    """A launch is right for its inputs; ATen's value differs because it rounds the value of each node."""

    launch: int
    kernel: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgedLaunch:
    """The verdict on one launch of one of Inductor's kernels."""

    launch: int
    kernel: str
    graph: int
    verdict: LaunchVerdict
    nodes: tuple[str, ...] = ()  # nodes that the launch implements
    lines: tuple[PythonLine, ...] = ()
    wrong: tuple[WrongElements, ...] = ()
    why: str = ""  # why there is no reference, what made its inputs wrong, or what it was not compiled for
    others: tuple[int, ...] = ()  # launches with partial results for it: one of these launches is off
    rounded: tuple[str, ...] = ()  # nodes whose ATen value differs because ATen rounds more often
    operators: tuple[str, ...] = ()  # of libraries, with partial results for it, as `others`
    unjudged: tuple[str, ...] = ()  # arguments that it wrote that have no reference, unlike others

    @property
    def partly(self) -> bool:
        """True if what has a reference is right, and something that it wrote has none."""
        return self.verdict == "right" and bool(self.unjudged)

    @property
    def unchecked(self) -> bool:
        """True if something that it wrote has no reference, and nothing that it wrote is off."""
        return self.verdict == "no reference" or (bool(self.unjudged) and self.verdict != "off")


@dataclass(frozen=True, slots=True)
class Overwritten:
    """Something reads other memory than it should, or a value that another launch has overwritten."""

    graph: int
    reader: str  # "launch 4 triton_...", "output 0"
    buffer: str
    node: str  # the node whose value should have been read; "": no single one
    by: int | None  # the launch that overwrote it; None: not a launch that was seen
    by_kernel: str
    cause: str  # PASSES or GENERATED, with an operator that may have written to it instead
    wrong: WrongElements | None = None
    lines: tuple[PythonLine, ...] = ()
    also: tuple[str, ...] = ()  # the other results of the call that are off, and may have other causes
    instead: str = ""  # the buffer whose content it read: it was passed another one; "": none that is known

    @property
    def kernels(self) -> tuple[str, str]:
        """The kernels that read and overwrite it; "": it is none, or none that was seen."""
        return self.reader.partition("launch ")[2].partition(" ")[2], self.by_kernel


@dataclass(frozen=True, slots=True)
class LibraryOff:
    """An operator that generated code calls is off: of a library, or one that executes graphs."""

    graph: int
    operator: str  # "aten::mm", "torch.ops.higher_order.while_loop"
    wrong: WrongElements
    lines: tuple[PythonLine, ...] = ()
    readers: tuple[str, ...] = ()  # operators of the program that read its result, and may have written to it
    repeats_right: bool = False  # executed once more, with what it should have read, it is right
    others: tuple[str, ...] = ()  # that may be off instead: "aten::mm (node mm)", whose result no launch read


@dataclass(frozen=True, slots=True)
class NotLaunched:
    """A call of a graph did not launch a kernel that generated code should call."""

    graph: int
    kernel: str  # "": not known, because generated code never called it
    nodes: tuple[str, ...]  # that the kernel implements
    elsewhere: int | None  # a launch of it in another call; None: generated code has no call of it
    lines: tuple[PythonLine, ...] = ()

    @property
    def name(self) -> str:
        """The kernel, as a sentence names it."""
        return self.kernel or f"the kernel of {first_names(self.nodes)}"


@dataclass(frozen=True, slots=True)
class PassesOff:
    """Inductor's graph passes changed what a graph computes: its kernels are faithful to a wrong graph."""

    graph: int
    wrong: WrongElements
    first: str  # first node after the passes that is off; "": none that both graphs have
    lines: tuple[PythonLine, ...] = ()  # of this node, else of the result
    passes: tuple[ChangingPass, ...] = ()  # those that change it; none: the run did not record them
    also: tuple[str, ...] = ()  # as of `Overwritten`


@dataclass(frozen=True, slots=True)
class OutputOff:
    """A result of a graph is off, and no judged launch explains it."""

    graph: int
    wrong: WrongElements
    unjudged: tuple[str, ...]  # launches and operators without a reference
    rounded: tuple[RoundedOtherwise, ...] = ()  # launches that the result depends on
    lines: tuple[PythonLine, ...] = ()
    also: tuple[str, ...] = ()  # as of `Overwritten`
    complete: bool = True  # False: the run lacks launches of its call
    launched: bool = True  # False: the step that computes it made no launch that was seen


@dataclass(frozen=True, slots=True)
class SharedResult:
    """A result of a graph shares memory with another one, or with an input, that it is no view of."""

    graph: int
    result: str  # "output 1"
    node: str
    other: str  # "output 0", "input 2"
    other_node: str
    cause: str  # as of `Overwritten`, or BEFORE_INDUCTOR
    lines: tuple[PythonLine, ...] = ()
    passes: tuple[EarlierPass, ...] | None = None  # as of `TracedOff`


@dataclass(frozen=True, slots=True)
class TracedOff:
    """A result is off by the graph that Dynamo traced, and nothing by the graph that Inductor received."""

    graph: int  # the compiled one
    wrong: WrongElements  # its node is one of Dynamo's graph
    unjudged: tuple[str, ...] = ()  # launches of the call without a reference
    lines: tuple[PythonLine, ...] = ()
    passes: tuple[EarlierPass, ...] | None = None  # that change the graph; None: they are not known
    first: str = ""  # first node of Dynamo's graph that Inductor's graph does not compute; "": not known
    operators: tuple[
        str, ...
    ] = ()  # of this node, and of those that it reads: what these pass on may be wrong


ResultFinding: TypeAlias = Overwritten | PassesOff | OutputOff  # of a result that is off
Finding: TypeAlias = ResultFinding | LibraryOff | NotLaunched | SharedResult | TracedOff
