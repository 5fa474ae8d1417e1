"""The format of compiled graphs in a run: FX nodes before and after Inductor's passes, and the schedule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from tracing.errors import Problem
from tracing.model import Blob, CompiledGraph
from tracing.store.lines import REFUSED
from tracing.store.reader import Run

T = TypeVar("T")
OWN_KERNEL = "UserDefinedTritonKernel"  # class of a node of Inductor that launches a kernel of the program
_COMPILERS = re.compile(r"[/\\](site|dist)-packages[/\\](torch|triton)[/\\]")


class PythonLine(msgspec.Struct, frozen=True, array_like=True):
    """A line of Python that a node of a graph comes from."""

    file: str
    line: int
    function: str
    code: str

    @property
    def is_of_compiler(self) -> bool:
        """True for a line of the installed torch or Triton."""
        return _COMPILERS.search(self.file) is not None


class FxNode(msgspec.Struct, frozen=True):
    """A node of an FX graph. References to nodes in `args` and `kwargs` are {"node": NAME}."""

    name: str
    op: str  # "placeholder", "call_function", "get_attr", "output", ...
    target: str  # the operator: "aten::add.Tensor"
    args: Sequence[Any] = ()
    kwargs: Any = None
    value: Any = None  # shape, stride, dtype and device of what it gives
    line: int = -1  # in `FxGraph.lines`; -1: unknown
    constant: Any = None  # a tensor of a get_attr
    graph: FxGraph | None = None  # of a get_attr: a branch of cond, the body of a loop, a score_mod
    written: Sequence[str] | None = None  # by the program's kernel or operator; None: torch's schema says it
    formula: str | None = None  # where an operator has its gradient, "train.py:30"; "": unknown; None: none


class FxGraph(msgspec.Struct, frozen=True):
    """An FX graph: nodes in their order, and the lines of Python that they come from, outermost first."""

    nodes: Sequence[FxNode]
    lines: Sequence[Sequence[PythonLine]] = ()

    @property
    def inputs(self) -> list[FxNode]:
        """Its placeholders, then the tensors that it reads as attributes, and that no node holds."""
        placeholders = (one for one in self.nodes if one.op == "placeholder")
        return [*placeholders, *filter(_is_read_from_outside, self.nodes)]

    def frames_of(self, node: FxNode) -> Sequence[PythonLine]:
        """The lines of Python that a node comes from, outermost first."""
        return self.lines[node.line] if 0 <= node.line < len(self.lines) else ()

    def line_of(self, node: FxNode) -> PythonLine | None:
        """The innermost line of Python that a node comes from, outside of torch and Triton if possible."""
        frames = self.frames_of(node)
        outside = [one for one in frames if not one.is_of_compiler]
        return [*frames, *outside][-1] if frames else None

    def lines_of(self, nodes: Iterable[FxNode]) -> tuple[PythonLine, ...]:
        """The lines of some nodes, as of `line_of`, each once."""
        return tuple(dict.fromkeys(line for one in nodes if (line := self.line_of(one)) is not None))


def _is_read_from_outside(node: FxNode) -> bool:
    # a tensor whose content is an input of each call
    return node.op == "get_attr" and node.graph is None and node.constant is None


class ScheduledCall(msgspec.Struct, frozen=True):
    """A call of a kernel in generated code, with its arguments: "buf0"."""

    kernel: str
    arguments: Sequence[str]


class ScheduleStep(msgspec.Struct, frozen=True):
    """A part of the generated code that computes some buffers from others."""

    kind: str  # "kernel", "library": an operator outside of Inductor, "none": nothing is computed
    buffers: Sequence[str]
    reads: Sequence[str]  # names of buffers and inputs, by their current content
    nodes: Sequence[str]  # of the graph, which it was made from
    calls: Sequence[ScheduledCall] = ()
    code: str = ""  # of a library: the class of Inductor's node


class ScheduledBuffer(msgspec.Struct, frozen=True):
    """A buffer, and the node of the graph whose value it holds."""

    node: str  # "": no single one
    origins: Sequence[str]  # nodes that its content was made from
    dtype: str = ""
    parts: Sequence[int] = ()  # its number, if the node returns several tensors
    kind: str = msgspec.field(default="", name="class")  # of Inductor


class Schedule(msgspec.Struct, frozen=True):
    """The steps of a graph's generated code."""

    inputs: Sequence[str]
    outputs: Sequence[str]
    steps: Sequence[ScheduleStep]
    buffers: Mapping[str, ScheduledBuffer]
    overwrites: Mapping[str, Sequence[str]] = {}  # a content -> the contents that it overwrites
    locations: Mapping[str, str] = {}  # a content that overwrites another one -> the buffer that has it
    removed: Sequence[str] = ()  # buffers that are never in memory

    def location(self, name: str) -> str:
        """The buffer, as generated code names it, that has a content."""
        return self.locations.get(name, name)


class GraphFile(msgspec.Struct, frozen=True):
    """The data attached to a compiled graph, also in Inductor's caches."""

    compile_id: str
    backward: bool
    text: str
    nodes: msgspec.Raw
    post_grad_text: str
    post_grad: msgspec.Raw
    code: str
    schedule: msgspec.Raw


def encoded(content: object) -> bytes:
    """JSON of a graph or a schedule, as `read_graph` and `read_schedule` read it."""
    return msgspec.json.encode(content)


def read_graph(run: Run, blob: Blob) -> FxGraph:
    """An FX graph of a run; raises Problem if it is damaged."""
    return _decoded(run, blob, FxGraph)


def read_schedule(run: Run, graph: CompiledGraph) -> Schedule:
    """The schedule of a compiled graph."""
    return _decoded(run, graph.schedule, Schedule)


def _decoded(run: Run, blob: Blob, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(run.bytes(blob), type=kind)
    except REFUSED as error:
        raise Problem(f"{run.path}: a graph is damaged: {error}", "record the run anew") from None
