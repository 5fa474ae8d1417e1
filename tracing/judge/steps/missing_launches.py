"""Finds kernels that one call of a compiled graph did not launch.

Another call of the graph launched them, or generated code does not call them at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tracing.analyze.judge.findings import NotLaunched
from tracing.analyze.judge.launched_steps import LaunchedStep, made_steps
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.graph_programs import GraphPrograms
from tracing.judge.recorded_calls import RecordedCall
from tracing.model import KernelLaunch


@dataclass(slots=True)
class MissingLaunches:
    """The steps of the calls of one graph.

    Generated code calls no kernel for a size of 0: it has no call, or skips it if the size is symbolic.
    """

    graph: int
    program: FxProgram  # the graph as it was lowered
    code: str  # generated for it
    # by index of the call: of those whose launches are all recorded
    calls: Mapping[int, Sequence[LaunchedStep]]

    def of(self, call: int) -> dict[int, NotLaunched]:
        """What one call did not launch, by position of its step."""
        steps = self.calls.get(call, ())
        if not any(one.launches for one in steps):
            return {}  # whatever launched its kernels was not seen
        absent = ((i, one) for i, one in enumerate(steps) if one.step.kind == "kernel" and not one.launches)
        return {i: missing for i, one in absent if (missing := self._missing(i, one))}

    def unmatched(self, call: int) -> str:
        """The first kernel of several steps that one call did not launch for each of them; "": there is none.

        Which of its launches belongs to which step is not known then.
        """
        steps = self.calls.get(call, ())
        kernels = [one.kernel for made in steps for one in made.step.calls]
        absent = (one.kernel for one in self.of(call).values())
        return next((one for one in absent if kernels.count(one) > 1), "")

    def _missing(self, position: int, made: LaunchedStep) -> NotLaunched | None:
        others = (steps[position].launches for steps in self.calls.values())
        elsewhere = next((launches[0] for launches in others if launches), None)
        sizes = self._sizes(made)
        if sizes is None or 0 in sizes:
            return None
        if elsewhere is None:
            return None if self._is_called(made) else self._never(made)
        return self._not_this_time(made, elsewhere) if all(type(one) is int for one in sizes) else None

    def _sizes(self, made: LaunchedStep) -> list[object] | None:
        # of the dimensions of all values of a step; None: it has none that is known
        values = [self.program.nodes[name].value for name in made.step.nodes if name in self.program.nodes]
        shapes = [one.get("shape") or () for one in values if isinstance(one, Mapping)]
        return [size for shape in shapes for size in shape] if shapes else None

    def _is_called(self, made: LaunchedStep) -> bool:
        # in generated code: if no launch of it was seen, perhaps the recorder did not see it
        names = (re.escape(one.kernel) for one in made.step.calls)
        return any(re.search(rf"(?m)^ *{one}(\.run)?\(", self.code) for one in names)

    def _never(self, made: LaunchedStep) -> NotLaunched:
        name = made.step.calls[0].kernel if made.step.calls else ""
        nodes = tuple(made.step.nodes)
        return NotLaunched(self.graph, name, nodes, None, self.program.lines(nodes))

    def _not_this_time(self, made: LaunchedStep, elsewhere: KernelLaunch) -> NotLaunched:
        steps = next(iter(self.calls.values()))
        kernels = {one.kernel for one in made.step.calls}
        alike = [one.step for one in steps if kernels & {call.kernel for call in one.step.calls}]
        nodes = tuple(dict.fromkeys(node for step in alike for node in step.nodes))
        lines = self.program.lines(nodes)
        return NotLaunched(self.graph, elsewhere.kernel_name, nodes, elsewhere.index, lines)


def missing_launches(calls: Iterable[RecordedCall], graphs: GraphPrograms) -> dict[int, MissingLaunches]:
    """The steps of each graph, by its number.

    calls -- all of one process
    """
    made: dict[int, dict[int, list[LaunchedStep]]] = {}
    for one in calls:
        if one.complete:
            steps, _ = made_steps(graphs.program(one.call.graph).schedule, one.launches)
            made.setdefault(one.call.graph, {})[one.call.index] = steps
    return {
        graph: MissingLaunches(graph, graphs.program(graph).lowered, graphs.code(graph), steps)
        for graph, steps in made.items()
    }
