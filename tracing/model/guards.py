"""The frames that Dynamo compiled: graphs, guards, graph breaks, recompilations."""

from __future__ import annotations

from dataclasses import dataclass

from tracing.model.record import Blob, Record


class FrameGuard(Record, frozen=True):
    """A condition that Dynamo checks before it calls compiled code."""

    code: str  # "L['n'] == 2"
    source: str = ""  # the guarded value: "L['n']", a local; "G['scale']", a global; empty: the process
    kind: str = ""  # Dynamo's name: "EQUALS_MATCH"; empty: not known
    python: str = ""  # the line of the user's code that needs it: "model.py:12"; empty: none does
    line: str = ""  # its text


class FailedGuard(Record, frozen=True):
    """The reason why a frame's compiled code could not be called, which led to a recompilation."""

    compile_id: str  # of the compiled code
    guard: FrameGuard


class GraphBreak(Record, frozen=True):
    """A line at which a graph ended, or for which a frame stays in eager or fails to compile."""

    reason: str  # torch's text; empty: torch gives none
    python: str = ""  # the innermost line of the user's code: "model.py:12"; empty: not known
    line: str = ""  # its text


class FrameCompile(Record, frozen=True, file="guards"):
    """One compile of one frame by Dynamo, successful or not."""

    compile_id: str  # Dynamo's number of the frame, and of its compile: "0/0"
    # "forward", or "torch_dynamo_resume_in_forward_at_12"; of a module of torch "Sequential.forward"
    function: str
    python: str  # its first line: "model.py:10"
    operators: int = 0  # of the graph
    graph: Blob = ""  # for people; empty: there is none
    # bytecode that replaces that of the function, as `dis` prints it; empty: the frame stays in eager
    bytecode: Blob = ""
    guards: tuple[FrameGuard, ...] = ()
    breaks: tuple[GraphBreak, ...] = ()
    failed: tuple[FailedGuard, ...] = ()  # the latest compile first; empty: the frame's first compile
    limit: str = ""  # torch's message when it stops compiling the frame
    eager: str = ""  # why the frame stays in eager; if `raised`, why its compile failed
    raised: bool = False  # torch.compile raised, as with fullgraph=True: nothing of the frame was executed
    backend: str = ""  # that received the graph: "inductor"; empty: not known

    @property
    def traced(self) -> bool:
        """True if Dynamo made a graph with operators, which its backend may have failed to compile."""
        return self.operators > 0 or (self.raised and self.graph != "")


@dataclass(frozen=True, slots=True)
class CompiledFrame:
    """A compile of a frame with its texts."""

    facts: FrameCompile
    graph: str  # empty: there is none
    bytecode: str  # empty: the frame stays in eager
    cached: bool = False  # it is known from Dynamo's cache, which has no graph

    @property
    def guards(self) -> tuple[FrameGuard, ...]:
        """The conditions that are checked before the compiled code is called."""
        return self.facts.guards
