"""Inspect the guards, graphs and bytecode of a program in its own process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tracing.analyze.runs.frame_compiles import GuardReport
from tracing.model import CompiledFrame
from tracing.record.graphs.frame_compiles import described
from tracing.report.guards import guards_json, guards_text
from tracing.upstream.torch.frame_compiles import cached_compiles, frame_compiles, is_compiled


@dataclass(frozen=True, slots=True)
class InspectedProgram(GuardReport):
    """All compiles of a program, in the order in which they ended."""

    def summary(self) -> str:
        """What `tracing guards` prints, as plain text."""
        return "\n".join(map(str, guards_text(self, "compiles[{number}].guards")))

    def json(self) -> dict[str, Any]:
        """What `tracing guards --json` prints."""
        return guards_json(self)


@dataclass(slots=True)
class GuardInspector:
    """While entered, notes what Dynamo compiles in this process, without affecting the program.

    backend -- the backend with which `inspect` compiles an uncompiled function
    """

    backend: str | Callable[..., Any] = "inductor"
    _frames: list[CompiledFrame] = field(default_factory=list)
    _exit: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> GuardInspector:
        self._exit.enter_context(frame_compiles(lambda one: self._frames.append(described(one))))
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    @property
    def report(self) -> InspectedProgram:
        """The compiles so far."""
        return InspectedProgram(tuple(self._frames))

    def inspect(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> InspectedProgram:
        """Call a function once; returns guards, bytecode and graph of each of its frames.

        function -- a compiled function, or an ordinary one, which is compiled for this call

        For frames that were compiled earlier, Dynamo's caches have guards and bytecode, but no graph.
        Raises what the function raises.
        """
        compiled = function if is_compiled(function) else torch.compile(function, backend=self.backend)
        before = [replace(described(one), cached=True) for one in cached_compiles(compiled)]
        start = len(self._frames)
        with GuardInspector() as now:
            compiled(*args, **kwargs)
        known = {one.facts.compile_id for one in self._frames[:start]}
        cached = [one for one in before if one.facts.compile_id not in known]
        return InspectedProgram((*self._frames[:start], *cached, *now._frames))
